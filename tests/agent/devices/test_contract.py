"""What any `Devices` keeps to, whoever answers."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from jupyter_gpupool.agent.devices.base import Devices
from jupyter_gpupool.agent.devices.simulated import SimulatedDevices


@pytest.fixture(params=["simulated", pytest.param("nvml", marks=pytest.mark.stubs)])
def devices(request: pytest.FixtureRequest) -> Iterator[Devices]:
    if request.param == "simulated":
        yield SimulatedDevices(4)
        return
    request.getfixturevalue("gpus").with_gpus(4).split(3, instances=2)
    yield request.getfixturevalue("open_nvml")()


def test_devices_have_uuids_of_their_own(devices: Devices):
    """No two devices share a UUID, and none lacks one."""
    uuids = [device.uuid for device in devices.list()]
    assert len(set(uuids)) == len(uuids) >= 4
    assert all(uuid[:4] in ("GPU-", "MIG-", "SIM-") for uuid in uuids)


def test_listing_twice_gives_the_same(devices: Devices):
    """What a device is does not change by looking."""
    assert devices.list() == devices.list()


def test_devices_have_a_model_and_memory(devices: Devices):
    """Placement can always go by model and memory."""
    assert all(device.model and device.memory_bytes > 0 for device in devices.list())


def test_samples_come_in_the_order_of_the_list(devices: Devices):
    """Each device is sampled once, also when it cannot say much."""
    sampled = [sample.uuid for sample in devices.sample()]
    assert sampled == [device.uuid for device in devices.list()]


def test_well_devices_have_no_problem(devices: Devices):
    """A device that works is neither lost nor a problem."""
    assert all(not sample.lost and not sample.problems for sample in devices.sample())


def test_samples_say_when_they_were_taken(devices: Devices):
    """Times are aware, in UTC, and now."""
    for sample in devices.sample():
        assert sample.at.tzinfo is UTC
        assert abs(datetime.now(UTC) - sample.at) < timedelta(minutes=1)


def test_links_lead_to_other_devices_of_the_host(devices: Devices):
    """A link never leads to the device itself or off the host."""
    uuids = {device.uuid for device in devices.list()}
    for device in devices.list():
        assert {link.to for link in device.links} <= uuids - {device.uuid}


def test_instances_name_the_gpu_they_are_cut_from(devices: Devices):
    """A parent is a GPU that is not itself to be leased."""
    uuids = {device.uuid for device in devices.list()}
    parents = {device.parent for device in devices.list() if device.parent}
    assert not parents & uuids


def test_closing_twice_is_fine(devices: Devices):
    """An agent that is stopped while it stops does not fail."""
    devices.close()
    devices.close()


def test_opening_again_lists_the_same(devices: Devices, request: pytest.FixtureRequest):
    """A restarted agent knows its devices again."""
    before = devices.list()
    devices.close()
    reopen: Callable[[], Devices] = (
        (lambda: SimulatedDevices(4))
        if before[0].simulated
        else request.getfixturevalue("open_nvml")
    )
    assert reopen().list() == before
