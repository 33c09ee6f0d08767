from collections.abc import Callable

import pytest
from stubs.state import StubGpu, StubState

from jupyter_gpupool.agent.devices.nvml import NvmlDevices
from jupyter_gpupool.pool.device import LinkKind

pytestmark = pytest.mark.stubs
Open = Callable[[], NvmlDevices]


def _links(devices: NvmlDevices) -> dict[tuple[int, int], LinkKind]:
    at = {device.uuid: number for number, device in enumerate(devices.list())}
    return {
        (at[device.uuid], at[link.to]): link.kind
        for device in devices.list()
        for link in device.links
    }


@pytest.mark.parametrize(
    ("level", "kind"),
    [
        (0, LinkKind.PCIE_SWITCH),
        (10, LinkKind.PCIE_SWITCH),
        (20, LinkKind.PCIE_SWITCH),
        (30, LinkKind.PCIE_BRIDGE),
        (40, LinkKind.NUMA),
        (50, LinkKind.SYSTEM),
    ],
)
def test_pcie_ancestors_become_links(gpus: StubState, open_nvml: Open, level, kind):
    """Each of NVML's levels has its word, both ways."""
    gpus.with_gpus(2).near(0, 1, level)
    assert _links(open_nvml()) == {(0, 1): kind, (1, 0): kind}


def test_direct_nvlinks_come_before_pcie(gpus: StubState, open_nvml: Open):
    """Only the pair that is wired is linked by NVLink."""
    gpus.with_gpus(3).nvlink(0, 1).near(0, 2, 10)
    links = _links(open_nvml())
    assert links[0, 1] is links[1, 0] is LinkKind.NVLINK
    assert links[0, 2] is LinkKind.PCIE_SWITCH
    assert links[1, 2] is LinkKind.NUMA


def test_a_switch_links_all_that_hang_on_it(gpus: StubState, open_nvml: Open):
    """GPUs on an NVSwitch reach each other, and no other one."""
    gpus.with_gpus(3).nvswitch(0, 1)
    links = _links(open_nvml())
    assert links[0, 1] is LinkKind.NVLINK
    assert links[0, 2] is LinkKind.NUMA


def test_instances_never_use_nvlink(gpus: StubState, open_nvml: Open):
    """Instances reach each other by PCIe, on their own GPU and beyond."""
    gpus.with_gpus(2).nvlink(0, 1).split(0).split(1)
    links = _links(open_nvml())
    assert links[0, 1] is LinkKind.PCIE_SWITCH
    assert LinkKind.NVLINK not in links.values()


def test_cpus_and_numa_node_come_from_the_gpu(gpus: StubState, open_nvml: Open):
    """An instance sits where its GPU sits."""
    gpus.with_gpus(StubGpu(uuid="GPU-00ff", bus=1, cpus="0", numa_node=1)).split(0)
    devices = open_nvml().list()
    assert {(device.cpu_affinity, device.numa_node) for device in devices} == {((0,), 1)}


def test_cpus_this_process_may_not_use_are_left_out(gpus: StubState, open_nvml: Open):
    """A worker is never told to run where it cannot."""
    gpus.with_gpus(StubGpu(uuid="GPU-00ff", bus=1, cpus="4000-4001"))
    assert open_nvml().list()[0].cpu_affinity == ()


def test_an_unknown_numa_node_is_none(gpus: StubState, open_nvml: Open):
    """Nothing is made up where the machine does not say."""
    gpus.with_gpus(StubGpu(uuid="GPU-00ff", bus=250, numa_node=-1))
    assert open_nvml().list()[0].numa_node is None
