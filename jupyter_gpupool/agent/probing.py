"""Asks an interpreter what its environment has, without a zygote and without importing any of it.

Called by `environments`. The interpreter runs the text of `protocol/versions.py`, as a user who
may do no harm: what it loads is somebody else's.
"""

import asyncio
import contextlib
import inspect
import json
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_gpupool.protocol import versions

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
    try:
        process = await _start(interpreter, identity)
    except PermissionError as error:
        raise CannotRun(error.strerror) from error
    except OSError as error:
        return _no_python(error.strerror or "it does not start")
    try:
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            return _read(await _all_said(process))
    except TimeoutError:
        return Probed(problem=f"it does not answer within {_ANSWERS_WITHIN_S:.0f} s")
    finally:
        await _end(process)


async def _start(interpreter: Path, identity: Identity | None) -> Process:
    return await asyncio.create_subprocess_exec(
        interpreter,
        "-c",
        _TEXT,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        cwd="/",
        # Not isolated, for a user's own packages count for what runs as that user; and by a
        # variable, for old Pythons refuse an option that they do not know.
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONSAFEPATH": "1"},
        start_new_session=True,
        user=None if identity is None else identity.uid,
        group=None if identity is None else identity.gid,
        extra_groups=None if identity is None else identity.groups,
    )


async def _all_said(process: Process) -> bytes:
    """What it writes until its end, or until nobody would read on."""
    assert process.stdout is not None
    said = b""
    while len(said) < _MOST_BYTES and (more := await process.stdout.read(_MOST_BYTES)):
        said += more
    return said


async def _end(process: Process) -> None:
    if process.returncode is None:
        # Its session is its own: what it started goes with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_ENDS_WITHIN_S):
            await process.communicate()


def _read(said: bytes) -> Probed:
    # Warnings may come first.
    last = (said.decode(errors="replace").strip().splitlines() or [""])[-1]
    try:
        answer = json.loads(last)
        found = {str(name): str(version) for name, version in answer["versions"].items()}
        return Probed(versions=found, problem=str(answer["problem"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _no_python("it answers otherwise")


def _no_python(why: str) -> Probed:
    return Probed(problem=f"it is no Python ({why})", is_python=False)
