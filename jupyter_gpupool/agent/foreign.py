"""Processes that use a device outside any claim: seen, shown, never leased over.

Called by `host` with each sample. A process that NVML lists is ours only if it belongs to a lease
on that very device; marks in an environment are worth nothing on another one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample

from . import procfs
from .footprint import Footprint, belongs
from .keys import ProcessKey
from .stopping import LOOK


def foreign_on(sample: DeviceSample, leases: Iterable[Footprint]) -> tuple[DeviceProcess, ...]:
    """The processes on a device that belong to none of its leases, with user and command.

    Nobody too where NVML cannot say: `states` tells people that nobody looks.
    """
    footprints = tuple(leases)
    return tuple(
        described(process)
        for process in sample.processes or ()
        if not any(belongs(one, process.pid, procfs.read_row, LOOK) for one in footprints)
    )


def owners_on(sample: DeviceSample, leases: Iterable[Footprint]) -> Mapping[int, ProcessKey]:
    """Whose lease each process on a device belongs to, by pid; others' are left out."""
    footprints = tuple(leases)
    owners = {}
    for process in sample.processes or ():
        for one in footprints:
            if belongs(one, process.pid, procfs.read_row, LOOK):
                owners[process.pid] = one.key
                break
    return owners


def described(process: DeviceProcess) -> DeviceProcess:
    """The process with its user and command, where this host knows them."""
    if process.user and process.command:
        return process
    user, command = procfs.describe(process.pid)
    return replace(process, user=process.user or user, command=process.command or command)
