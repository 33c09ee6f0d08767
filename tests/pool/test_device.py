"""What stands against leasing a device."""

import pytest

from jupyter_gpupool.pool.device import DeviceProcess, DeviceState, Health
from jupyter_gpupool.pool.ids import LeaseId


def test_a_healthy_idle_device_may_be_leased():
    """Nothing stands against it."""
    assert DeviceState().may_be_leased


def test_a_desktop_keeps_no_device_back():
    """What only draws is shown, and a lease may come on top."""
    desktop = DeviceProcess(pid=7, memory_bytes=None, graphics_only=True)
    assert DeviceState(foreign=(desktop,)).may_be_leased


@pytest.mark.parametrize(
    "state",
    [
        DeviceState(health=Health.QUARANTINED, problem="Double-bit ECC errors."),
        DeviceState(health=Health.LOST, problem="Fell off the bus."),
        DeviceState(foreign=(DeviceProcess(pid=7, memory_bytes=None),)),
        DeviceState(held_elsewhere=True),
        DeviceState(in_use_by=(LeaseId("l-1"),)),
    ],
    ids=["quarantined", "lost", "foreign process", "another pool's", "not yet free"],
)
def test_anything_on_it_keeps_a_device_back(state):
    """Each reason alone is enough."""
    assert not state.may_be_leased
