"""Signals processes and waits for their end; which processes, `sweeping` knows.

Called by `sweeping`, `memory` and `host`. A signal goes to the very process that was meant, never
to another one that has its pid by now.
"""

import asyncio
import os
import signal

from . import procfs
from .footprint import Look
from .procfs import ProcessId

_LOOK_EVERY_S = 0.05
LOOK = Look(environment=procfs.marks_of, output=procfs.output_of, user=procfs.user_of)
"""Looks closer at processes of this host."""


def send(process: ProcessId, number: signal.Signals) -> bool:
    """Signal this very process; whether it was there."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except OSError:
        # No descriptor is left: then a look just before has to do.
        return _send_plainly(process, number)
    try:
        if not procfs.is_alive(process):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return False
    else:
        return True
    finally:
        os.close(descriptor)


async def ask_to_end(process: ProcessId, grace_s: float) -> None:
    """Ask it politely, and give it that long."""
    row = procfs.read_row(process.pid)
    # A stopped process would only hear it once it is continued.
    if row is None or row.is_stopped or not send(process, signal.SIGTERM):
        return
    await wait_for_end(process, grace_s)


async def wait_for_end(process: ProcessId, timeout_s: float) -> bool:
    """Wait until this process has ended; whether it did in time."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    except OSError:
        return await _look_for_end(process, timeout_s)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        if not procfs.is_alive(process):
            return True
        async with asyncio.timeout(timeout_s):
            await ended.wait()
    except TimeoutError:
        return False
    else:
        return True
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _send_plainly(process: ProcessId, number: signal.Signals) -> bool:
    if not procfs.is_alive(process):
        return False
    try:
        os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _look_for_end(process: ProcessId, timeout_s: float) -> bool:
    """Without a descriptor that could tell, look again and again."""
    try:
        async with asyncio.timeout(timeout_s):
            while procfs.is_alive(process):  # noqa: ASYNC110 - there is no descriptor to wait on
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        return False
    return True
