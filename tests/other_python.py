"""Python environments made in a moment: those of the running tests, seen from another folder."""

import sys
from pathlib import Path

_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_OURS = "jupyter_gpupool"


def make_environment(folder: Path, *, without: tuple[str, ...] = ()) -> Path:
    """An environment with every package that the tests have, but for ours and those left out.

    Returns:
        Its interpreter.
    """
    interpreter = folder / "bin" / "python"
    packages = packages_of(interpreter)
    interpreter.parent.mkdir(parents=True)
    packages.mkdir(parents=True)
    base = Path(sys._base_executable)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    interpreter.symlink_to(base)
    for theirs in filter(lambda path: path.endswith("site-packages"), sys.path):
        for entry in Path(theirs).iterdir():
            if not entry.name.startswith((*without, _OURS, "_editable")):
                (packages / entry.name).symlink_to(entry)
    return interpreter


def packages_of(interpreter: Path) -> Path:
    """Where an environment's packages are."""
    return interpreter.parent.parent / "lib" / _VERSION / "site-packages"
