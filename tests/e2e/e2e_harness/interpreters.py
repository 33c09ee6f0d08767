"""A Python that another user may run: a virtual environment under root's home is closed to others.

Called where a pool, or a claim's workers, become another user.
"""

import os
import subprocess
import sys
from pathlib import Path

_REPOSITORY = Path(__file__).parents[3]
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def open_to(uid: int, folder: Path) -> Path | None:
    """This interpreter, else the system's of the same version with the same packages, else None.

    The latter is a small virtual environment made in `folder`.
    """
    candidates = (Path(sys.executable), _of_the_system(folder))
    return next((found for found in candidates if _runs(found, uid)), None)


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
