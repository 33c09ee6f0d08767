"""When a device is free again after a lease. Pure.

Called by `device_watch` for each device whose processes are gone. A device is leased again only
after NVML too shows it empty; what NVML cannot say is never taken for empty. A desktop that draws
on it may go on, and so may leases that have other parts of it.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample
from jupyter_gpupool.pool.units import format_bytes

TOLERATED_BYTES = 512 * 2**20
_TOLERATED_UNSEEN_BYTES = 32 * 2**20
"""Where NVML lists no processes: less than any CUDA context takes."""


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
        baseline_bytes: In use for computing before the lease; None if unknown.
        waited_s: Since its last process had gone.
        left: What its processes left on the host that cannot be removed, in a sentence; else "".
    """

    simulated: bool
    sample: DeviceSample | None
    baseline_bytes: int | None
    waited_s: float
    left: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How free it is, and one sentence on what stands against it."""

    freedom: Freedom
    reason: str = ""


def verdict_on(
    evidence: Evidence, *, verify_within_s: float, tolerated_bytes: int = TOLERATED_BYTES
) -> Verdict:
    """Judge a device whose processes are gone."""
    if evidence.simulated and not evidence.left:
        return Verdict(freedom=Freedom.FREE)
    objection = evidence.left or _objection(evidence, tolerated_bytes)
    if not objection:
        return Verdict(freedom=Freedom.FREE)
    late = evidence.waited_s >= verify_within_s
    freedom = Freedom.QUARANTINED if late else Freedom.NOT_YET
    return Verdict(freedom=freedom, reason=objection)


def _objection(evidence: Evidence, tolerated_bytes: int) -> str:
    sample = evidence.sample
    if sample is not None and sample.removed:
        # No instance is removed while anything uses it.
        return ""
    if sample is None or sample.lost:
        return "NVML does not say whether the device is free after its last lease."
    if computing := [process for process in sample.processes or () if not process.graphics_only]:
        names = ", ".join(_name(process) for process in computing)
        return f"Still in use after its last lease ended: {names}."
    return _objection_to_memory(evidence, sample, tolerated_bytes)


def _objection_to_memory(evidence: Evidence, sample: DeviceSample, tolerated_bytes: int) -> str:
    used, baseline = used_for_computing(sample), evidence.baseline_bytes or 0
    if used is None:
        return "NVML does not say how much of the device's memory is in use."
    if sample.processes is None:
        allowed = baseline + min(tolerated_bytes, _TOLERATED_UNSEEN_BYTES)
    else:
        allowed = max(baseline, tolerated_bytes)
    if used <= allowed:
        return ""
    unseen = " NVML does not say by which process." if sample.processes is None else ""
    return (
        f"{format_bytes(used)} are still in use after its last lease ended,"
        f" and {format_bytes(allowed)} would be normal.{unseen}"
    )


def without(sample: DeviceSample, others: Collection[int]) -> DeviceSample:
    """The sample without the processes of leases that go on, and without their memory.

    Where NVML does not say how much that is, nothing is known of what is left.
    """
    theirs = [process for process in sample.processes or () if process.pid in others]
    if not theirs:
        return sample
    sizes = [process.memory_bytes for process in theirs]
    used = sample.memory_used_bytes
    if used is not None and None not in sizes:
        used = max(0, used - sum(size or 0 for size in sizes))
    else:
        used = None
    left = tuple(process for process in sample.processes or () if process.pid not in others)
    return replace(sample, processes=left, memory_used_bytes=used)


def used_for_computing(sample: DeviceSample) -> int | None:
    """Memory in use but for what a desktop draws with; None where NVML cannot say."""
    if sample.memory_used_bytes is None:
        return None
    drawing = (p.memory_bytes or 0 for p in sample.processes or () if p.graphics_only)
    return max(0, sample.memory_used_bytes - sum(drawing))


def _name(process: DeviceProcess) -> str:
    known = " ".join(part for part in (process.user, process.command) if part)
    return f"pid {process.pid}" + (f" ({known})" if known else "")
