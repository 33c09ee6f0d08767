"""Pythons other than ours: open to another user, of another patch release, with fewer packages.

Called where a pool, or a claim's workers, become another user (a virtual environment under root's
home is closed to others), and where a kernel's Python is not the pool's.
"""

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_REPOSITORY = Path(__file__).parents[3]
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def open_to(uid: int, folder: Path) -> Path | None:
    """This interpreter, else the system's of the same version with the same packages, else None.

    The latter is a small virtual environment made in `folder`.
    """
    candidates = (Path(sys.executable), _of_the_system(folder))
    return next((found for found in candidates if _runs(found, uid)), None)


def of_another_patch_release(folder: Path) -> Path | None:
    """The system's Python of our minor version with our packages, if it is of another patch."""
    interpreter = _of_the_system(folder)
    command = [str(interpreter), "-c", "import platform; print(platform.python_version())"]
    try:
        version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return None if version == platform.python_version() else interpreter


def with_nothing_but(folder: Path, *distributions: str) -> Path:
    """This Python with these distributions and all that they require, and not a package more.

    A small virtual environment made in `folder`; its packages are links to ours.
    """
    packages = folder / "lib" / _VERSION / "site-packages"
    (folder / "bin").mkdir(parents=True)
    packages.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    (packages / "ours.pth").write_text(str(_REPOSITORY))
    for found in _with_requirements(distributions):
        for top in _top_level(found):
            link = packages / top
            if not link.exists():
                link.symlink_to(Path(str(found.locate_file(top))))
    interpreter = folder / "bin" / "python"
    interpreter.symlink_to(Path(sys.executable).resolve())
    return interpreter


def _top_level(found: Distribution) -> set[str]:
    return {Path(str(file)).parts[0] for file in found.files or ()} - {"..", "bin"}


def _with_requirements(names: Iterable[str]) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    open_names = list(names)
    while open_names:
        name = canonicalize_name(open_names.pop())
        if name not in found:
            with contextlib.suppress(PackageNotFoundError):
                found[name] = distribution(name)
                needed = map(Requirement, found[name].requires or ())
                open_names += [r.name for r in needed if r.marker is None or r.marker.evaluate()]
    return list(found.values())


def _of_the_system(folder: Path) -> Path:
    """A virtual environment of the system's Python that takes its packages from ours."""
    interpreter = folder / "bin" / "python"
    packages = folder / "lib" / _VERSION / "site-packages"
    if not interpreter.is_symlink():
        folder.chmod(0o755)
        interpreter.parent.mkdir()
        packages.mkdir(parents=True)
        (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
        ours = [str(_REPOSITORY), *(path for path in sys.path if path.endswith("-packages"))]
        (packages / "ours.pth").write_text("\n".join(ours))
        interpreter.symlink_to(f"/usr/bin/{_VERSION}")
    return interpreter


def _runs(interpreter: Path, uid: int) -> bool:
    command = [str(interpreter), "-c", "import distributed, jupyter_gpupool.pool"]
    try:
        done = subprocess.run(
            command,
            user=uid,
            group=uid,
            extra_groups=[],
            env={**os.environ, "HOME": "/"},
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0
