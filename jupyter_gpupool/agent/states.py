"""What stands against leasing each device of the host, from all that is known of it. Pure.

Called by `reports` for each report.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_gpupool.pool.device import Device, DeviceProcess, DeviceSample, DeviceState, Health
from jupyter_gpupool.pool.ids import DeviceUuid, LeaseId

_FOREIGN_UNKNOWN = "NVML does not list processes here, so use outside the pool goes unseen."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that is known of the host's devices.

    Attributes:
        samples: The last one each.
        foreign: Processes outside any claim.
        in_use_by: Leases a device is not free of.
        held_elsewhere: Devices another pool on this host has leased.
        quarantined: Devices not to be leased for what is known beyond their samples, and why.
    """

    samples: Mapping[DeviceUuid, DeviceSample]
    foreign: Mapping[DeviceUuid, tuple[DeviceProcess, ...]]
    in_use_by: Mapping[DeviceUuid, tuple[LeaseId, ...]]
    held_elsewhere: frozenset[DeviceUuid]
    quarantined: Mapping[DeviceUuid, str]


def state_of(device: Device, known: Known) -> DeviceState:
    """The agent's word on one device."""
    uuid = device.uuid
    health, problem = _health(known.samples.get(uuid), known.quarantined.get(uuid, ""))
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
