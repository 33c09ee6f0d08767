"""A host's word on its devices."""

from datetime import UTC, datetime

import pytest

from jupyter_gpupool.pool.device import DeviceState
from jupyter_gpupool.pool.host import Host, HostPhase
from jupyter_gpupool.pool.ids import DeviceUuid, HostId


@pytest.fixture
def host():
    return Host(
        id=HostId("h-1"),
        name="node1",
        address="10.0.0.1",
        phase=HostPhase.CONNECTED,
        since=datetime(2026, 11, 30, tzinfo=UTC),
        cpus=8,
        memory_bytes=2**34,
        states=((DeviceUuid("GPU-1"), DeviceState(held_elsewhere=True)),),
    )


def test_a_host_tells_the_state_of_its_device(host):
    """The agent's last word is found by UUID."""
    assert host.state_of(DeviceUuid("GPU-1")).held_elsewhere


def test_a_host_knows_nothing_of_others_devices(host):
    """Asking for a device that is not there is a programming error, not "free"."""
    with pytest.raises(KeyError):
        host.state_of(DeviceUuid("GPU-2"))
