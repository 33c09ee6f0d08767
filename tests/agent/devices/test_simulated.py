from jupyter_gpupool.agent.devices.simulated import SimulatedDevices


def test_one_host_simulates_the_same_devices_for_everybody():
    """Two pools on one host meet at the lock of the same devices."""
    assert SimulatedDevices(3).list() == SimulatedDevices(4).list()[:3]


def test_hosts_simulate_different_devices():
    """Two hosts of one pool never claim to have the same device."""
    here, there = SimulatedDevices(2, host="a").list(), SimulatedDevices(2, host="b").list()
    assert not {device.uuid for device in here} & {device.uuid for device in there}


def test_simulated_devices_say_so():
    """Nobody takes one for a GPU, and nothing is claimed to be measured."""
    devices = SimulatedDevices()
    assert [device.simulated for device in devices.list()] == [True] * 4
    assert all(s.utilisation is None and s.memory_used_bytes is None for s in devices.sample())
