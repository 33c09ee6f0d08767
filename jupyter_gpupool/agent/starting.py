"""Has one scheduler or worker forked: its folder, log, device lock and record, then the fork.

Called by `carry_out`. The record is written before the fork is asked for, so that whatever dies in
between, the next agent knows what to look for.
"""

import os
from dataclasses import replace

from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.errors import NotFound
from jupyter_gpupool.protocol.launch import Launch

from . import procfs
from .claim_folders import make_working_folder, open_log
from .launching import launch_of, memory_limit_bytes
from .parts import Parts
from .procfs import ProcessId
from .seen import Seen, Stage, forked
from .users import identity_of
from .wanted import WantedProcess
from .zygotes import Identity

DEFAULT_ENVIRONMENT = "default"
"""The environment the agent itself runs in; the only one it offers so far."""


async def start(seen: Seen, wanted: WantedProcess, parts: Parts) -> Seen:
    """Fork the process; how it then stands.

    Raises:
        PoolError: If it cannot be forked; nothing of it is left then.
    """
    _check_environment(wanted)
    identity = identity_of(wanted.claim.os_user)
    device = _device_of(wanted, parts)
    seen = _prepared(seen, wanted, device, identity, parts)
    uid, gid = (identity.uid, identity.gid) if identity else (os.getuid(), os.getgid())
    make_working_folder(parts.folder, seen.key.claim_id, uid=uid, gid=gid)
    launch = launch_of(
        wanted,
        terms=parts.terms,
        device=device,
        scheduler_address=_scheduler_address(wanted, parts),
    )
    parts.records.write(seen)
    pid = await _fork(seen, launch, identity, parts)
    row = procfs.read_row(pid)
    # Gone already: an identity that no process has, so that its end is noticed at once.
    process = row.id if row is not None else ProcessId(pid, 0)
    parts.groups.put(seen.key, pid)
    return forked(replace(seen, stage=Stage.FORKING), process)


async def _fork(seen: Seen, launch: Launch, identity: Identity | None, parts: Parts) -> int:
    lock_fd = None if seen.device is None else parts.locks.acquire(seen.device)
    log_fd = open_log(parts.folder, seen.key)
    try:
        return await parts.zygotes.fork(launch, identity=identity, log_fd=log_fd, lock_fd=lock_fd)
    finally:
        os.close(log_fd)


def _prepared(
    seen: Seen,
    wanted: WantedProcess,
    device: Device | None,
    identity: Identity | None,
    parts: Parts,
) -> Seen:
    uid = identity.uid if identity else os.getuid()
    if device is None:
        return replace(seen, uid=uid)
    return replace(
        seen,
        uid=uid,
        memory_limit_bytes=memory_limit_bytes(wanted.claim.options, parts.terms),
        baseline_bytes=seen.baseline_bytes or parts.devices.memory_used_bytes(device.uuid),
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


def _check_environment(wanted: WantedProcess) -> None:
    if wanted.claim.environment not in ("", DEFAULT_ENVIRONMENT):
        raise NotFound(
            f"This host has no Python environment named {wanted.claim.environment!r}.",
            hint=f'It offers "{DEFAULT_ENVIRONMENT}".',
        )
