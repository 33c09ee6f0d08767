"""Asks an interpreter what its environment has, without a zygote and without importing any of it.

Called by `environments`. The interpreter runs the text of `protocol/versions.py`, as a user who
may do no harm: what it loads is somebody else's.
"""

import asyncio
import contextlib
import inspect
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol import versions

from .footprint import HOST_MARK
from .own_thread import in_own_thread
from .zygotes import Identity

_ANSWERS_WITHIN_S = 20.0
_ENDS_WITHIN_S = 2.0
_MOST_BYTES = 64 * 1024
_TEXT = inspect.getsource(versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What an interpreter said of its environment.

    Attributes:
        problem: Why no worker can run in it, as part of a sentence; else "".
        is_python: Whether it answered as a Python does.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    is_python: bool = True


class CannotRun(Exception):
    """This user may not run that interpreter; which says nothing of what others may."""


async def probe(interpreter: Path, identity: Identity | None) -> Probed:
    """Ask it; `identity` is the user who asks, None the agent's own.

    Raises:
        CannotRun: If that user may not.
    """
    asking = in_own_thread(partial(_ask, interpreter, identity))
    try:
        # Its own deadline does not hold where a file system hangs.
        async with asyncio.timeout(_ANSWERS_WITHIN_S + 2 * _ENDS_WITHIN_S):
            return await asking
    except PermissionError as error:
        raise CannotRun(error.strerror) from error
    except TimeoutError:
        return _silent()
    except OSError as error:
        return _no_python(error.strerror or "it does not start")


def _ask(interpreter: Path, identity: Identity | None) -> Probed:
    said, process = b"", _start(interpreter, identity)
    assert process.stdout is not None
    try:
        said = _all_said(process.stdout.fileno())
    except TimeoutError:
        return _silent()
    finally:
        process.stdout.close()
        _end(process)
    return _read(said)


def _start(interpreter: Path, identity: Identity | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - it is run as whoever may do no harm by it
        [interpreter, "-c", _TEXT],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        env=_environ(),
        start_new_session=True,
        user=None if identity is None else identity.uid,
        group=None if identity is None else identity.gid,
        extra_groups=None if identity is None else identity.groups,
    )


def _environ() -> dict[str, str]:
    # Not isolated, for a user's own packages count for what runs as that user; and by a variable,
    # for old Pythons refuse an option that they do not know.
    fixed = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONSAFEPATH": "1"}
    # So the next agent ends one that hangs when this one dies.
    return fixed | {HOST_MARK: os.environ[HOST_MARK]} if HOST_MARK in os.environ else fixed


def _all_said(output: int) -> bytes:
    """What it writes until its end, or until nobody would read on.

    Raises:
        TimeoutError: If it comes to neither.
    """
    said, deadline_s = b"", time.monotonic() + _ANSWERS_WITHIN_S
    poll = select.poll()
    poll.register(output, select.POLLIN)
    while len(said) < _MOST_BYTES:
        if not poll.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
            raise TimeoutError
        more = os.read(output, _MOST_BYTES)
        if not more:
            break
        said += more
    return said


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # Its session is its own: what it started goes with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_ENDS_WITHIN_S)


def _read(said: bytes) -> Probed:
    # Warnings may come first.
    last = (said.decode(errors="replace").strip().splitlines() or [""])[-1]
    try:
        answer = json.loads(last)
        found = {str(name): str(version) for name, version in answer["versions"].items()}
        return Probed(versions=found, problem=str(answer["problem"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _no_python("it answers otherwise")


def _silent() -> Probed:
    return Probed(problem=f"it does not answer within {format_duration(_ANSWERS_WITHIN_S)}")


def _no_python(why: str) -> Probed:
    return Probed(problem=f"it is no Python ({why})", is_python=False)
