"""What stands against leasing a device."""

from datetime import UTC, datetime

from jupyter_gpupool.agent.states import Known, state_of
from jupyter_gpupool.pool.device import Device, DeviceProcess, DeviceSample, Health

DEVICE = Device(uuid="GPU-1", index=0, model="A100", memory_bytes=1)
PROCESS = DeviceProcess(pid=7, memory_bytes=None)


def state(**different):
    values = {
        "samples": {},
        "foreign": {},
        "in_use_by": {},
        "held_elsewhere": frozenset(),
        "quarantined": {},
    }
    return state_of(DEVICE, Known(**(values | different)))


def sampled(**different):
    return {"GPU-1": DeviceSample(uuid="GPU-1", at=datetime.now(UTC), **different)}


def test_well_device_may_be_leased() -> None:
    """Nothing stands against it."""
    assert state(samples=sampled()).may_be_leased


def test_foreign_process_stands_against_it() -> None:
    """It is shown as well."""
    found = state(foreign={"GPU-1": (PROCESS,)})
    assert found.foreign == (PROCESS,)
    assert not found.may_be_leased


def test_lost_device_says_what_is_wrong() -> None:
    """Its own words, or plain ones."""
    assert state(samples=sampled(lost=True)).health is Health.LOST
    assert state(samples=sampled(lost=True, problems=("Off the bus.",))).problem == "Off the bus."


def test_sick_device_is_quarantined_with_all_its_problems() -> None:
    """One sentence after the other."""
    found = state(samples=sampled(problems=("ECC.", "XID 79.")))
    assert (found.health, found.problem) == (Health.QUARANTINED, "ECC. XID 79.")


def test_device_that_was_not_free_in_time_is_quarantined() -> None:
    """With the reason."""
    found = state(quarantined={"GPU-1": "Still in use."})
    assert (found.health, found.problem) == (Health.QUARANTINED, "Still in use.")


def test_own_lease_is_not_held_elsewhere() -> None:
    """Its worker may hold the lock before the agent has it back."""
    found = state(held_elsewhere=frozenset({"GPU-1"}), in_use_by={"GPU-1": ("l1",)})
    assert not found.held_elsewhere
    assert found.in_use_by == ("l1",)


def test_other_pools_lease_stands_against_it() -> None:
    """Two pools on one host never share a device."""
    assert not state(held_elsewhere=frozenset({"GPU-1"})).may_be_leased


def test_desktop_does_not_stand_against_it() -> None:
    """It is shown, and computes nothing."""
    desktop = DeviceProcess(pid=8, memory_bytes=None, graphics_only=True)
    assert state(foreign={"GPU-1": (desktop,)}).may_be_leased
    assert not state(foreign={"GPU-1": (desktop, PROCESS)}).may_be_leased


def test_unknown_foreign_use_is_said() -> None:
    """The device may be leased, for where NVML never lists processes it always would be unknown."""
    found = state(samples=sampled(processes=None))
    assert found.may_be_leased
    assert "goes unseen" in found.problem
