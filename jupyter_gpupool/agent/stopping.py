"""Ends processes for good: asks, waits, then kills everything that belongs to them.

Called by `endings`. Nothing of a claim may be left running, so the process table is read again
after each sweep until it shows none of them.
"""

import asyncio
import os
import signal
import time

from . import procfs
from .control_groups import pids_in
from .footprint import Footprint, Look, members
from .procfs import ProcessId, ProcessRow

_SWEEPS_EVERY_S = 0.01
_SLOWEST_SWEEP_S = 0.5
LOOK = Look(environment=procfs.environment_of, output=procfs.output_of, user=procfs.user_of)
"""Looks closer at processes of this host."""


async def end(footprint: Footprint, *, grace_s: float, give_up_after_s: float = 5.0) -> bool:
    """End all of it; whether nothing is left.

    False means that something survives SIGKILL, as a process stuck in the driver does: call again.
    """
    if footprint.leader is not None and grace_s > 0:
        await _ask(footprint.leader, grace_s)
    deadline_s = time.monotonic() + give_up_after_s
    pause_s = _SWEEPS_EVERY_S
    while kill_all(footprint):
        if time.monotonic() > deadline_s:
            return False
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _SLOWEST_SWEEP_S)
    return True


def kill_all(footprint: Footprint) -> int:
    """Kill all that is there of it right now; how many that were."""
    found = find_all(footprint)
    for row in found:
        send(row.id, signal.SIGKILL)
    return len(found)


def find_all(footprint: Footprint) -> tuple[ProcessRow, ...]:
    """All that is there of it right now."""
    grouped = pids_in(footprint.group) if footprint.group else frozenset[int]()
    return members(footprint, procfs.read_rows(), LOOK, grouped=grouped)


def send(process: ProcessId, number: signal.Signals) -> bool:
    """Signal this very process, never another one with its pid; whether it was there."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
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


async def _ask(leader: ProcessId, grace_s: float) -> None:
    row = procfs.read_row(leader.pid)
    # A stopped process would only hear it once it is continued.
    if row is None or row.is_stopped or not send(leader, signal.SIGTERM):
        return
    await wait_for_end(leader, grace_s)


async def wait_for_end(process: ProcessId, timeout_s: float) -> bool:
    """Wait until this process has ended; whether it did in time."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        if not procfs.is_alive(process):
            return True
        await asyncio.wait_for(ended.wait(), timeout_s)
    except TimeoutError:
        return False
    else:
        return True
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
