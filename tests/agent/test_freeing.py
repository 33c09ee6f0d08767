"""When a device is free again after a lease."""

from datetime import UTC, datetime

import pytest

from jupyter_gpupool.agent.freeing import Evidence, Freedom, verdict_on, without
from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample

MIB = 2**20


def a_sample(**different) -> DeviceSample:
    values = {"uuid": "GPU-1", "at": datetime.now(UTC), "memory_used_bytes": 0}
    return DeviceSample(**(values | different))


def judge(sample: DeviceSample | None, *, waited_s: float = 0, baseline: int | None = 0, **more):
    evidence = Evidence(simulated=False, sample=sample, baseline_bytes=baseline, waited_s=waited_s)
    return verdict_on(evidence, verify_within_s=10, **more)


def test_simulated_device_is_free_at_once() -> None:
    """Nobody can measure it, and nothing can be left on it."""
    evidence = Evidence(simulated=True, sample=None, baseline_bytes=None, waited_s=0)
    assert verdict_on(evidence, verify_within_s=10).freedom is Freedom.FREE


def test_empty_device_is_free() -> None:
    """No process and no memory."""
    assert judge(a_sample()).freedom is Freedom.FREE


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (None, "does not say"),
        (a_sample(lost=True), "does not say"),
        (a_sample(memory_used_bytes=None), "does not say how much"),
        (a_sample(memory_used_bytes=600 * MIB), "600 MiB are still in use"),
        (
            a_sample(
                processes=(DeviceProcess(pid=7, memory_bytes=1, user="ann", command="python"),)
            ),
            "pid 7 (ann python)",
        ),
    ],
)
def test_doubt_waits_then_quarantines(sample, words) -> None:
    """Unknown is never free; the reason says what stands against it."""
    assert judge(sample, waited_s=9.9).freedom is Freedom.NOT_YET
    late = judge(sample, waited_s=10)
    assert late.freedom is Freedom.QUARANTINED
    assert words in late.reason


@pytest.mark.parametrize("simulated", [False, True])
def test_what_cannot_be_removed_is_said(simulated) -> None:
    """Whatever NVML says, and also of a device that it does not know."""
    left = "Its last claim left what cannot be removed: /dev/shm/psm_x (read-only file system)."
    evidence = Evidence(
        simulated=simulated, sample=a_sample(), baseline_bytes=0, waited_s=10, left=left
    )
    verdict = verdict_on(evidence, verify_within_s=10)
    assert (verdict.freedom, verdict.reason) == (Freedom.QUARANTINED, left)


def test_quarantine_ends_when_nvml_agrees() -> None:
    """However late that is."""
    assert judge(a_sample(), waited_s=10_000).freedom is Freedom.FREE


def test_what_was_in_use_before_may_be_in_use_after() -> None:
    """A display or a daemon keeps its memory."""
    kept = a_sample(memory_used_bytes=900 * MIB)
    assert judge(kept, baseline=900 * MIB).freedom is Freedom.FREE
    assert judge(kept, baseline=None).freedom is Freedom.NOT_YET


def test_tolerance_is_the_admins_choice() -> None:
    """It replaces the usual 512 MiB."""
    sample = a_sample(memory_used_bytes=100 * MIB)
    assert judge(sample).freedom is Freedom.FREE
    assert judge(sample, tolerated_bytes=50 * MIB).freedom is Freedom.NOT_YET


def test_a_desktop_may_go_on_drawing() -> None:
    """Nor does what it needs more than before keep the device back."""
    browser = DeviceProcess(pid=7, memory_bytes=3_000 * MIB, graphics_only=True)
    drawn_on = a_sample(processes=(browser,), memory_used_bytes=3_100 * MIB)
    assert judge(drawn_on).freedom is Freedom.FREE
    stuck = a_sample(processes=(browser,), memory_used_bytes=9_000 * MIB)
    assert "5.86 GiB are still in use" in judge(stuck).reason


def test_unknown_processes_leave_room_for_no_cuda_context() -> None:
    """Memory is then the only evidence, and a bare context takes less than what is usual."""
    context = a_sample(processes=None, memory_used_bytes=300 * MIB)
    assert "by which process" in judge(context).reason
    assert judge(context, baseline=290 * MIB).freedom is Freedom.FREE


def test_removed_instance_is_free() -> None:
    """None is removed while anything uses it."""
    assert judge(a_sample(lost=True, removed=True, processes=None)).freedom is Freedom.FREE


def test_others_parts_of_a_device_are_no_obstacle() -> None:
    """Their processes and their memory are left out."""
    processes = (DeviceProcess(pid=7, memory_bytes=900 * MIB),)
    sample = a_sample(memory_used_bytes=1000 * MIB, processes=processes)
    assert judge(without(sample, {7})).freedom is Freedom.FREE
    assert judge(without(sample, {8})).freedom is Freedom.NOT_YET


def test_memory_that_others_do_not_have_is_left_of_the_lease() -> None:
    """However small their part of what is in use."""
    processes = (DeviceProcess(pid=7, memory_bytes=100 * MIB),)
    sample = a_sample(memory_used_bytes=1000 * MIB, processes=processes)
    assert "900 MiB" in judge(without(sample, {7}), waited_s=10).reason


def test_unknown_memory_of_others_leaves_the_lease_in_doubt() -> None:
    """Where NVML cannot say what they have, nobody knows what is left."""
    processes = (DeviceProcess(pid=7, memory_bytes=None),)
    sample = a_sample(memory_used_bytes=10 * MIB, processes=processes)
    assert "does not say how much" in judge(without(sample, {7}), waited_s=10).reason
