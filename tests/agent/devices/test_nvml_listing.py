from collections.abc import Callable

import pytest
from stubs.state import GIB, StubGpu, StubState

from jupyter_gpupool.agent.devices.nvml import LIST_EVERY_S, NvmlDevices

pytestmark = pytest.mark.stubs
Open = Callable[[], NvmlDevices]


def test_a_gpu_is_known_by_uuid_model_and_memory(gpus: StubState, open_nvml: Open):
    """What NVML says of a GPU arrives unchanged."""
    gpus.with_gpus(StubGpu(uuid="GPU-a", bus=1, name="NVIDIA H200", memory_bytes=141 * GIB))
    (device,) = open_nvml().list()
    assert (device.uuid, device.model, device.memory_bytes) == ("GPU-a", "NVIDIA H200", 141 * GIB)


def test_instances_stand_in_for_their_gpu(gpus: StubState, open_nvml: Open):
    """Each MIG instance is a device with its own memory; their GPU is none."""
    gpus.with_gpus(2).split(1, instances=3, memory_bytes=5 * GIB)
    whole, *instances = open_nvml().list()
    assert whole.uuid == gpus.gpus[0].uuid
    assert [device.memory_bytes for device in instances] == [5 * GIB] * 3
    assert {device.parent for device in instances} == {gpus.gpus[1].uuid}


def test_a_split_gpu_without_instances_is_a_problem(gpus: StubState, open_nvml: Open):
    """CUDA cannot use it, so it is shown with the reason."""
    gpus.with_gpus(1).split(0, instances=0)
    devices = open_nvml()
    assert [device.uuid for device in devices.list()] == [gpus.gpus[0].uuid]
    assert "MIG mode without an instance" in devices.sample()[0].problems[0]


def test_shuffled_order_changes_the_index_alone(gpus: StubState, open_nvml: Open):
    """A device is its UUID, wherever NVML lists it."""
    gpus.with_gpus(3)
    before = {device.uuid: device.index for device in open_nvml().list()}
    gpus.shuffle([2, 0, 1])
    after = {device.uuid: device.index for device in open_nvml().list()}
    assert before.keys() == after.keys()
    assert [after[uuid] for uuid in before] == [1, 2, 0]


def test_order_shuffled_midway_keeps_each_sample_with_its_device(gpus: StubState, open_nvml: Open):
    """Use is never credited to the neighbour of the device that is used."""
    gpus.with_gpus(3).change(0, utilisation_percent=90)
    devices, busy = open_nvml(), gpus.gpus[0].uuid
    gpus.shuffle([2, 1, 0])
    assert {s.uuid: s.utilisation for s in devices.sample()}[busy] == pytest.approx(0.9)


def test_a_gpu_without_memory_of_its_own_shares_the_hosts(gpus: StubState, open_nvml: Open):
    """A GPU on the processor's die is listed with the memory it can use."""
    gpus.with_gpus(StubGpu(uuid="GPU-soc", bus=1, memory_bytes=0))
    devices = open_nvml()
    assert devices.list()[0].memory_bytes > 0
    assert devices.sample()[0].memory_used_bytes is None


def test_a_new_instance_is_found_while_running(gpus: StubState, open_nvml: Open, clock):
    """Cutting a GPU does not need a restart of the agent; the whole GPU is lost by it."""
    gpus.with_gpus(1)
    devices = open_nvml()
    gpus.split(0, instances=2)
    clock.advance(LIST_EVERY_S)
    samples = devices.sample()
    assert [sample.lost for sample in samples] == [False, False, True]
    assert "split" in samples[2].problems[0]


def test_instances_behind_a_hole_are_found(gpus: StubState, open_nvml: Open):
    """An instance that was removed does not hide those after it."""
    gpus.with_gpus(1).split(0, instances=3).destroy(0, 1)
    assert [device.uuid for device in open_nvml().list()] == [
        instance.uuid for instance in gpus.gpus[0].mig
    ]


@pytest.mark.parametrize("instances", [1, 2])
def test_a_destroyed_instance_is_known_to_be_no_more(
    gpus: StubState, open_nvml: Open, clock, instances
):
    """NVML works and lists its GPU: proof enough that nothing uses it."""
    gpus.with_gpus(1).split(0, instances=instances)
    devices, gone = open_nvml(), gpus.gpus[0].mig[0].uuid
    gpus.destroy(0, 0)
    clock.advance(LIST_EVERY_S)
    [sample] = [one for one in devices.sample() if one.uuid == gone]
    assert (sample.lost, sample.removed) == (True, True)


def test_an_instance_of_a_lost_gpu_is_not_known_to_be_no_more(
    gpus: StubState, open_nvml: Open, clock
):
    """Nobody can tell what is on it."""
    gpus.with_gpus(2).split(0)
    devices = open_nvml()
    gpus.lose(0)
    devices.sample()
    clock.advance(LIST_EVERY_S)
    assert [(s.lost, s.removed) for s in devices.sample()] == [
        (False, False),
        (True, False),
        (True, False),
    ]
