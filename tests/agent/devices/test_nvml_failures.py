from collections.abc import Callable

import pytest
from stubs.state import UNKNOWN_ERROR, StubState

from jupyter_gpupool.agent.devices.nvml import LIST_EVERY_S, OPEN_EVERY_S, NvmlDevices

pytestmark = pytest.mark.stubs
Open = Callable[[], NvmlDevices]
DRIVER_NOT_LOADED = 9


def _lost(devices: NvmlDevices) -> list[bool]:
    return [sample.lost for sample in devices.sample()]


def test_a_gpu_that_fell_off_the_bus_is_lost_alone(gpus: StubState, open_nvml: Open):
    """Its neighbours go on being sampled."""
    gpus.with_gpus(3)
    devices = open_nvml()
    gpus.lose(1)
    samples = devices.sample()
    assert [sample.lost for sample in samples] == [False, True, False]
    assert "fell off the bus" in samples[1].problems[0]


def test_a_lost_gpu_stays_listed(gpus: StubState, open_nvml: Open, clock):
    """It is shown as lost for as long as it is, also once NVML cannot even name it."""
    gpus.with_gpus(3)
    devices = open_nvml()
    before = {device.uuid for device in devices.list()}
    gpus.lose(1)
    for _ in range(3):
        lost = [sample for sample in devices.sample() if sample.lost]
        assert [sample.uuid for sample in lost] == [gpus.gpus[1].uuid]
        assert "fell off the bus" in lost[0].problems[0]
        clock.advance(LIST_EVERY_S)
    assert {device.uuid for device in devices.list()} == before


def test_a_gpu_that_comes_back_is_found(gpus: StubState, open_nvml: Open, clock):
    """After a reset it is well again without a restart of the agent."""
    gpus.with_gpus(2)
    devices = open_nvml()
    gpus.lose(0)
    devices.sample()
    clock.advance(LIST_EVERY_S)
    assert sum(_lost(devices)) == 1
    gpus.find(0)
    clock.advance(LIST_EVERY_S)
    assert _lost(devices) == [False, False]


def test_an_unplugged_gpu_is_lost_with_another_reason(gpus: StubState, open_nvml: Open, clock):
    """A device that NVML stops listing does not silently vanish."""
    gpus.with_gpus(2)
    devices, gone = open_nvml(), gpus.gpus[0].uuid
    gpus.unplug(0)
    clock.advance(LIST_EVERY_S)
    devices.sample()
    sample = devices.sample()[-1]
    assert (sample.uuid, sample.lost) == (gone, True)


@pytest.mark.parametrize("code", [UNKNOWN_ERROR, DRIVER_NOT_LOADED])
def test_nvml_that_fails_midway_loses_every_device(gpus: StubState, open_nvml: Open, code):
    """Each known device is sampled as lost, with NVML's own words, and nothing is raised."""
    gpus.with_gpus(2)
    devices = open_nvml()
    gpus.fail(code)
    for _ in range(3):
        samples = devices.sample()
        assert [sample.lost for sample in samples] == [True, True]
        assert all(len(sample.problems) == 1 for sample in samples)
    assert len(devices.list()) == 2
    assert devices.notice


def test_nvml_that_works_again_brings_every_device_back(gpus: StubState, open_nvml: Open, clock):
    """A driver may be replaced under a running agent."""
    gpus.with_gpus(2)
    devices = open_nvml()
    gpus.fail()
    assert _lost(devices) == [True, True]
    assert _lost(devices) == [True, True]
    gpus.fail(0).shuffle([1, 0])
    clock.advance(OPEN_EVERY_S)
    assert _lost(devices) == [False, False]
    assert [device.uuid for device in devices.list()] == [gpu.uuid for gpu in gpus.gpus]


def test_one_failing_gpu_is_not_taken_for_a_failing_nvml(gpus: StubState, open_nvml: Open):
    """An error of one device says nothing of the others."""
    gpus.with_gpus(2)
    devices = open_nvml()
    gpus.change(0, error=UNKNOWN_ERROR)
    assert _lost(devices) == _lost(devices) == [True, False]


def test_devices_appear_once_a_failing_driver_works(gpus: StubState, open_nvml: Open, clock):
    """An agent that starts while the driver fails needs no restart."""
    gpus.with_gpus(2).fail()
    devices = open_nvml()
    assert devices.list() == devices.sample() == ()
    gpus.fail(0)
    clock.advance(OPEN_EVERY_S)
    assert _lost(devices) == [False, False]


def test_xid_events_are_heard_after_nvml_came_back(gpus: StubState, open_nvml: Open, clock):
    """Opening anew does not make the agent deaf, nor forgetful."""
    gpus.with_gpus(1)
    devices = open_nvml()
    gpus.xid(0, 48)
    devices.sample()
    gpus.fail()
    devices.sample()
    gpus.fail(0)
    clock.advance(OPEN_EVERY_S)
    devices.sample()
    gpus.xid(0, 64)
    assert len(devices.sample()[0].problems) == 2
