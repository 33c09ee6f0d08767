"""A Python that another user may run: a virtual environment under root's home is closed to others.

Called where a pool, or a claim's workers, become another user.
"""

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

_REPOSITORY = Path(__file__).parents[3]
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """How to run our modules."""

    path: str = sys.executable
    environment: dict[str, str] = field(default_factory=dict)


def open_to(uid: int) -> Interpreter | None:
    """This interpreter, else the system's of the same version with the same packages, else None."""
    packages = f"{_REPOSITORY}{os.pathsep}{sysconfig.get_path('purelib')}"
    system = Interpreter(f"/usr/bin/{_VERSION}", {"PYTHONPATH": packages})
    return next((found for found in (Interpreter(), system) if _runs(found, uid)), None)


def _runs(interpreter: Interpreter, uid: int) -> bool:
    command = [interpreter.path, "-c", "import distributed, jupyter_gpupool.pool"]
    try:
        done = subprocess.run(
            command,
            user=uid,
            group=uid,
            extra_groups=[],
            env={**os.environ, **interpreter.environment, "HOME": "/"},
            cwd="/",
            capture_output=True,
            check=False,
        )
    except PermissionError:
        return False
    return done.returncode == 0
