"""What stands against leasing each device of the host, from all that is known of it. Pure.

Called by `reports` for each report.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from jupyter_gpupool.pool.device import Device, DeviceProcess, DeviceSample, DeviceState, Health
from jupyter_gpupool.pool.ids import DeviceUuid, LeaseId

_FOREIGN_UNKNOWN = "NVML does not list processes here, so use outside the pool goes unseen."
_PARTS_UNKNOWN = (
    "NVML does not say how much memory each process here has, so nobody who takes more than their"
    " part of it is found."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that is known of the host's devices.

    Attributes:
        samples: The last one each.
        foreign: Processes outside any claim.
        in_use_by: Leases a device is not free of.
        held_elsewhere: Devices another pool on this host has leased.
        quarantined: Devices not to be leased for what is known beyond their samples, and why.
        shared: Devices that workers have parts of.
    """

    samples: Mapping[DeviceUuid, DeviceSample]
    foreign: Mapping[DeviceUuid, tuple[DeviceProcess, ...]]
    in_use_by: Mapping[DeviceUuid, tuple[LeaseId, ...]]
    held_elsewhere: frozenset[DeviceUuid]
    quarantined: Mapping[DeviceUuid, str]
    shared: Collection[DeviceUuid] = ()


def state_of(device: Device, known: Known) -> DeviceState:
    """The agent's word on one device."""
    uuid = device.uuid
    sample = known.samples.get(uuid)
    health, problem = _health(sample, known.quarantined.get(uuid, ""))
    if not problem and sample is not None and uuid in known.shared:
        unknown = any(process.memory_bytes is None for process in sample.processes or ())
        problem = _PARTS_UNKNOWN if unknown else ""
    return DeviceState(
        health=health,
        problem=problem,
        foreign=known.foreign.get(uuid, ()),
        held_elsewhere=uuid in known.held_elsewhere and not known.in_use_by.get(uuid),
        in_use_by=known.in_use_by.get(uuid, ()),
    )


def _health(sample: DeviceSample | None, quarantine: str) -> tuple[Health, str]:
    if sample is not None and sample.lost:
        return Health.LOST, " ".join(sample.problems) or "The device no longer answers."
    if sample is not None and sample.problems:
        return Health.QUARANTINED, " ".join(sample.problems)
    if quarantine:
        return Health.QUARANTINED, quarantine
    if sample is not None and sample.processes is None:
        return Health.HEALTHY, _FOREIGN_UNKNOWN
    return Health.HEALTHY, ""
