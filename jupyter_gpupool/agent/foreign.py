"""Processes that use a device outside any claim: seen, shown, never leased over.

Called by `host` with each sample. A process that NVML lists is ours only if it belongs to a lease
on that very device; marks in an environment are worth nothing on another one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample

from . import procfs
from .control_groups import pids_in
from .footprint import Footprint, belongs
from .keys import ProcessKey
from .stopping import LOOK

Grouped = Sequence[tuple[Footprint, Collection[int]]]
"""Leases, each with the pids in its control group."""


def foreign_on(sample: DeviceSample, leases: Iterable[Footprint]) -> tuple[DeviceProcess, ...]:
    """The processes on a device that belong to none of its leases, with user and command.

    Nobody too where NVML cannot say: `states` tells people that nobody looks.
    """
    owners = owners_on(sample, leases)
    return tuple(described(p) for p in sample.processes or () if p.pid not in owners)


def owners_on(sample: DeviceSample, leases: Iterable[Footprint]) -> Mapping[int, ProcessKey]:
    """Whose lease each process on a device belongs to, by pid; others' are left out."""
    if not sample.processes:
        return {}
    # Whoever leaves its session and cleans its environment is still in its control group.
    grouped = [(one, pids_in(one.group) if one.group is not None else ()) for one in leases]
    found = ((process.pid, _owner(process.pid, grouped)) for process in sample.processes)
    return {pid: key for pid, key in found if key is not None}


def _owner(pid: int, grouped: Grouped) -> ProcessKey | None:
    for one, pids in grouped:
        if pid in pids or belongs(one, pid, procfs.read_row, LOOK):
            return one.key
    return None


def described(process: DeviceProcess) -> DeviceProcess:
    """The process with its user and command, where this host knows them."""
    if process.user and process.command:
        return process
    user, command = procfs.describe(process.pid)
    return replace(process, user=process.user or user, command=process.command or command)
