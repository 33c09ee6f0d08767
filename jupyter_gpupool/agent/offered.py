"""Which Python environments a host offers, from what its admin wrote down.

Made by `app` at the start, read by `environments`.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.using import OWN_ENVIRONMENT

DEFAULT_ENVIRONMENT = "default"
"""The environment the agent itself runs in: what a claim gets that names none."""
Stamp = tuple[tuple[str, int], ...]
"""A state of an environment's files."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_INTERPRETER = Path("bin") / "python"


@dataclass(frozen=True, slots=True)
class Offered:
    """A Python that workers can run in.

    Attributes:
        is_kernels: It is the one of somebody's kernel, and never shared between users.
        user: Whose that is, once it is known.
    """

    name: str
    interpreter: Path
    is_kernels: bool = False
    user: int | None = None

    def of(self, user: int) -> "Offered":
        """That user's own."""
        return replace(self, user=user)

    @property
    def log_name(self) -> str:
        """Its name in that of a log: all kernels' own ones are called the same."""
        if not self.is_kernels:
            return self.name
        return f"{self.name}-{hashlib.sha256(str(self.interpreter).encode()).hexdigest()[:8]}"

    def is_started_by(self, path: Path) -> bool:
        """Whether this path starts it, such as `python3` beside `python`."""
        # The folder counts as well: an environment's `python` is a link to the one it was made of.
        here = path.parent == self.interpreter.parent
        return here and path.resolve() == self.interpreter.resolve()

    def stamp(self) -> Stamp:
        """What changes when something is installed there or removed. May take long."""
        folders = self.interpreter.parent.parent.glob("lib*/python3*/*-packages")
        return tuple((str(path), _changed_ns(path)) for path in (self.interpreter, *folders))


def read_offers(paths: Mapping[str, str], *, must_exist: bool = True) -> tuple[Offered, ...]:
    """The environments of these names; a path leads to an interpreter or to its folder.

    Raises:
        BadRequest: If a name cannot be one, or a path leads to no program and has to.
    """
    found = {_checked(name): _interpreter(path) for name, path in paths.items()}
    for name, interpreter in found.items():
        if must_exist and not (interpreter.is_file() and os.access(interpreter, os.X_OK)):
            raise not_python(name, interpreter, "there is no such program")
    return tuple(Offered(name, interpreter) for name, interpreter in found.items())


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name) or name in (DEFAULT_ENVIRONMENT, OWN_ENVIRONMENT):
        raise BadRequest(
            f"{name[:80]!r} cannot be the name of an environment.",
            field="environments",
            hint="Use letters, digits, dots and dashes; not"
            f" {DEFAULT_ENVIRONMENT!r} and not {OWN_ENVIRONMENT!r}, which mean something already.",
        )
    return name


def _interpreter(path: str) -> Path:
    # Not resolved: the link in its folder is what makes an environment of an interpreter.
    given = Path(path).expanduser().absolute()
    return given / _INTERPRETER if given.is_dir() else given


def not_python(name: str, interpreter: Path, why: str) -> BadRequest:
    """The path of an environment leads to something else."""
    return BadRequest(
        f'The environment "{name}" has no Python at {interpreter}: {why}.',
        field="environments",
        hint="Give the path of an interpreter, or of the folder of an environment.",
    )


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
