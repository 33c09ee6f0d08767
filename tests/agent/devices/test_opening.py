import pytest
from stubs.state import LIBRARY_NOT_FOUND, UNKNOWN_ERROR, StubState

from jupyter_gpupool.agent.devices.nvml import NvmlDevices
from jupyter_gpupool.agent.devices.opening import open_devices

pytestmark = pytest.mark.stubs


def test_gpus_are_used_without_a_notice(gpus: StubState):
    """Where NVML lists GPUs nothing is simulated, whatever number was given."""
    gpus.with_gpus(2)
    opened = open_devices(simulated=8)
    assert [device.simulated for device in opened.devices.list()] == [False, False]
    assert opened.notice == ""
    opened.devices.close()


def test_missing_nvml_gives_four_simulated_devices_and_says_so(gpus: StubState):
    """One sentence says why, how many, and which parts of dask-cuda run."""
    gpus.fail(LIBRARY_NOT_FOUND)
    opened = open_devices()
    assert [device.simulated for device in opened.devices.list()] == [True] * 4
    for word in ("library", "4 devices are simulated", "DeviceHostFile", "PreImport", "RMM"):
        assert word in opened.notice


def test_a_host_without_gpus_counts_as_one_without_nvml(gpus: StubState):
    """A driver without a GPU is no reason to have no devices."""
    opened = open_devices(2)
    assert len(opened.devices.list()) == 2
    assert "NVML lists no GPU" in opened.notice


def test_zero_never_simulates(gpus: StubState):
    """A host that only holds schedulers has no devices, and says why."""
    gpus.fail(LIBRARY_NOT_FOUND)
    opened = open_devices(0)
    assert opened.devices.list() == opened.devices.sample() == ()
    assert "simulated" not in opened.notice


def test_a_failing_driver_is_not_replaced_by_simulation(gpus: StubState):
    """A GPU host whose driver fails for now waits for it instead of pretending."""
    gpus.with_gpus(1).fail(UNKNOWN_ERROR)
    opened = open_devices()
    assert isinstance(opened.devices, NvmlDevices)
    assert "Unknown Error" in opened.notice
