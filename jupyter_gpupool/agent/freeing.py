"""When a device is free again after a lease. Pure.

Called by `device_watch` for each device whose processes are gone. A device is leased again only
after NVML too shows it empty; what NVML cannot say is never taken for empty.
"""

from dataclasses import dataclass
from enum import StrEnum

from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample
from jupyter_gpupool.pool.units import format_bytes

TOLERATED_BYTES = 512 * 2**20


class Freedom(StrEnum):
    """How free a device is."""

    FREE = "free"
    NOT_YET = "not-yet"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What speaks for and against a device being free.

    Attributes:
        sample: Taken after its last process had gone; None if there is none yet.
        baseline_bytes: In use before the lease; None if unknown.
        waited_s: Since its last process had gone.
    """

    simulated: bool
    sample: DeviceSample | None
    baseline_bytes: int | None
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How free it is, and one sentence on what stands against it."""

    freedom: Freedom
    reason: str = ""


def verdict_on(
    evidence: Evidence, *, verify_within_s: float, tolerated_bytes: int = TOLERATED_BYTES
) -> Verdict:
    """Judge a device whose processes are gone."""
    if evidence.simulated:
        return Verdict(freedom=Freedom.FREE)
    objection = _objection(evidence, tolerated_bytes)
    if not objection:
        return Verdict(freedom=Freedom.FREE)
    late = evidence.waited_s >= verify_within_s
    freedom = Freedom.QUARANTINED if late else Freedom.NOT_YET
    return Verdict(freedom=freedom, reason=objection)


def _objection(evidence: Evidence, tolerated_bytes: int) -> str:
    sample = evidence.sample
    if sample is None or sample.lost:
        return "NVML does not say whether the device is free after its last lease."
    if sample.processes:
        names = ", ".join(_name(process) for process in sample.processes)
        return f"Still in use after its last lease ended: {names}."
    used = sample.memory_used_bytes
    allowed = max(evidence.baseline_bytes or 0, tolerated_bytes)
    if used is None:
        return "NVML does not say how much of the device's memory is in use."
    if used > allowed:
        return (
            f"{format_bytes(used)} are still in use after its last lease ended,"
            f" and {format_bytes(allowed)} would be normal."
        )
    return ""


def _name(process: DeviceProcess) -> str:
    known = " ".join(part for part in (process.user, process.command) if part)
    return f"pid {process.pid}" + (f" ({known})" if known else "")
