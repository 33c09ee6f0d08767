"""Compiles the stub libnvidia-ml.so.1 and libcuda.so.1, once for each state of their sources.

Called by `state.StubState`, by the fixtures of `conftest.py`, and by hand:
`python build.py [FOLDER]`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "c"
_COMMON = ("state.c", "contexts.c")
_LIBRARIES = {
    "libnvidia-ml.so.1": (
        "nvml.c",
        "nvml_samples.c",
        "nvml_places.c",
        "nvml_health.c",
    ),
    "libcuda.so.1": ("cuda.c",),
}
_FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-shared")


class NoCompiler(Exception):
    """The stubs cannot be built here; the message says so in one line."""


@dataclass(frozen=True, slots=True)
class StubLibraries:
    """A folder that, first on LD_LIBRARY_PATH, makes a machine look as if it had GPUs."""

    folder: Path

    @property
    def nvml(self) -> Path:
        return self.folder / "libnvidia-ml.so.1"

    @property
    def cuda(self) -> Path:
        return self.folder / "libcuda.so.1"


def build(into: Path | None = None) -> StubLibraries:
    """Compile what is not compiled yet, into a folder of `into` named after the sources' hash.

    Raises:
        NoCompiler: If there is no C compiler, or it refuses the sources.
    """
    into = into or cache_folder()
    folder = into / _hash_of_sources()
    if not folder.exists():
        into.mkdir(parents=True, exist_ok=True)
        _compile_aside(folder)
    return StubLibraries(folder)


def cache_folder() -> Path:
    """Where built stubs are kept. Root's are readable by the users its tests become."""
    if os.geteuid() == 0:
        return Path("/var/cache/jupyter-gpupool/build/stubs")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "jupyter-gpupool" / "build" / "stubs"


def _hash_of_sources() -> str:
    files = sorted(SOURCES.iterdir())
    parts = [path.name.encode() + path.read_bytes() for path in files]
    return hashlib.sha256(b"\0".join([*parts, repr(_FLAGS).encode()])).hexdigest()[:16]


def _compile_aside(folder: Path) -> None:
    """Compile into a folder of our own and move it into place, so that nobody sees half of it."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
        made = Path(aside) / "made"
        made.mkdir(mode=0o755)
        for library, sources in _LIBRARIES.items():
            _compile(made / library, sources)
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():
                raise


def _compile(library: Path, sources: tuple[str, ...]) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        raise NoCompiler("the stub NVML and CUDA libraries need a C compiler, and there is no cc")
    paths = [str(SOURCES / source) for source in (*sources, *_COMMON)]
    soname = f"-Wl,-soname,{library.name}"
    command = [compiler, *_FLAGS, soname, "-o", str(library), *paths, "-ldl", "-lpthread"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise NoCompiler(f"{compiler} cannot build the stubs: {ran.stderr.strip()[:500]}")


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else None).folder)
