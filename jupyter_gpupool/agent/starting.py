"""Has one scheduler or worker forked: its folder, log, device lock and record, then the fork.

Called by `carry_out`. The record is written before the fork is asked for, so that whatever dies in
between, the next agent knows what to look for.
"""

import asyncio
import os
from dataclasses import dataclass, replace

from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.errors import NotFound
from jupyter_gpupool.protocol.launch import Launch

from . import procfs
from .claim_folders import make_working_folder, open_log
from .launching import launch_of, memory_limit_bytes
from .offered import Offered
from .parts import Parts
from .procfs import ProcessId
from .seen import Seen
from .wanted import WantedProcess
from .zygotes import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """All that is needed to fork a process."""

    seen: Seen
    launch: Launch
    environment: Offered
    identity: Identity | None


async def prepare(seen: Seen, wanted: WantedProcess, parts: Parts) -> Prepared:
    """Check that the process can run here, and write down that it is about to.

    Raises:
        PoolError: If it cannot.
    """
    environment = parts.environments.find(wanted.claim.environment, wanted.claim.interpreter)
    identity = await parts.users.identity_of(wanted.claim.os_user)
    device = _device_of(wanted, parts)
    uid, gid = (identity.uid, identity.gid) if identity else (os.getuid(), os.getgid())
    seen = replace(seen, uid=uid)
    if device is not None:
        seen = _with_memory(seen, wanted, device, parts)
    make_working_folder(parts.folder, seen.key.claim_id, uid=uid, gid=gid)
    launch = launch_of(
        wanted,
        terms=parts.terms,
        device=device,
        scheduler_address=_scheduler_address(wanted, parts),
    )
    parts.records.write(seen)
    return Prepared(seen=seen, launch=launch, environment=environment, identity=identity)


async def fork(prepared: Prepared, parts: Parts) -> ProcessId:
    """Fork the process, with its device's lock and its log.

    Raises:
        PoolError: If it cannot be forked; nothing of it is left then.
    """
    key, device = prepared.seen.key, prepared.seen.device
    lock_fd = None if device is None else parts.locks.acquire(device)
    log_fd = open_log(parts.folder, key)
    try:
        pid = await parts.environments.fork(
            prepared.launch,
            environment=prepared.environment,
            identity=prepared.identity,
            log_fd=log_fd,
            lock_fd=lock_fd,
        )
    finally:
        os.close(log_fd)
    # The kernel takes milliseconds for it, which nobody has to wait for.
    asyncio.get_running_loop().run_in_executor(None, parts.groups.put, key, pid)
    parts.files.give(pid)
    row = procfs.read_row(pid)
    # Gone already: an identity that no process has, so that its end is noticed at once.
    return row.id if row is not None else ProcessId(pid, 0)


def _with_memory(seen: Seen, wanted: WantedProcess, device: Device, parts: Parts) -> Seen:
    used_bytes = parts.devices.memory_used_bytes(device.uuid)
    return replace(
        seen,
        memory_limit_bytes=memory_limit_bytes(wanted.claim.options, parts.terms),
        baseline_bytes=used_bytes if seen.baseline_bytes is None else seen.baseline_bytes,
    )


def _device_of(wanted: WantedProcess, parts: Parts) -> Device | None:
    if wanted.device is None:
        return None
    device = parts.devices.known.get(wanted.device)
    if device is None:
        raise NotFound(
            f"This host has no device {wanted.device}.", hint="It may have fallen off the bus."
        )
    return device


def _scheduler_address(wanted: WantedProcess, parts: Parts) -> str | None:
    scheduler = parts.table.get(wanted.key.scheduler)
    if scheduler is not None and scheduler.listens:
        return scheduler.address
    return wanted.claim.scheduler_address
