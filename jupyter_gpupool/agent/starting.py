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
from .temporary import name_temporary
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
    devices = _devices_of(wanted, parts)
    uid, gid = (identity.uid, identity.gid) if identity else (os.getuid(), os.getgid())
    seen = replace(seen, uid=uid)
    if devices:
        seen = _with_memory(seen, wanted, parts)
    make_working_folder(parts.folder, seen.key.claim_id, uid=uid, gid=gid)
    launch = launch_of(
        wanted,
        terms=parts.terms,
        devices=devices,
        scheduler_address=_scheduler_address(wanted, parts),
        temporary=str(name_temporary(parts.folder, seen.key.claim_id)),
    )
    parts.records.write(seen)
    return Prepared(seen=seen, launch=launch, environment=environment, identity=identity)


async def fork(prepared: Prepared, parts: Parts) -> ProcessId:
    """Fork the process, with its devices' locks and its log.

    Raises:
        PoolError: If it cannot be forked; nothing of it is left then.
    """
    key = prepared.seen.key
    lock_fds = tuple(parts.locks.acquire(device) for device in prepared.seen.devices)
    parts.sweeper.leftovers.note_start(key.claim_id)
    log_fd = open_log(parts.folder, key)
    try:
        pid = await parts.environments.fork(
            prepared.launch,
            environment=prepared.environment,
            identity=prepared.identity,
            log_fd=log_fd,
            lock_fds=lock_fds,
        )
    finally:
        os.close(log_fd)
    # The kernel takes milliseconds for it, which nobody has to wait for.
    asyncio.get_running_loop().run_in_executor(None, parts.groups.put, key, pid)
    parts.files.give(pid)
    row = procfs.read_row(pid)
    # Gone already: an identity that no process has, so that its end is noticed at once.
    return row.id if row is not None else ProcessId(pid, 0)


def _with_memory(seen: Seen, wanted: WantedProcess, parts: Parts) -> Seen:
    return replace(
        seen,
        memory_limit_bytes=memory_limit_bytes(wanted, parts.terms),
        baselines=seen.baselines or tuple(map(parts.devices.memory_used_beside, seen.devices)),
    )


def _devices_of(wanted: WantedProcess, parts: Parts) -> tuple[Device, ...]:
    found = []
    for uuid in wanted.devices:
        device = parts.devices.known.get(uuid)
        if device is None:
            raise NotFound(
                f"This host has no device {uuid}.", hint="It may have fallen off the bus."
            )
        found.append(device)
    return tuple(found)


def _scheduler_address(wanted: WantedProcess, parts: Parts) -> str | None:
    scheduler = parts.table.get(wanted.key.scheduler)
    if scheduler is not None and scheduler.listens:
        return scheduler.address
    return wanted.claim.scheduler_address
