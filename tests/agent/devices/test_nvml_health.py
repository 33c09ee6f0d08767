from collections.abc import Callable
from pathlib import Path

import pytest
from stubs.state import StubState

from jupyter_gpupool.agent.devices.nvml import HEALTH_EVERY_S, LIST_EVERY_S, NvmlDevices

pytestmark = pytest.mark.stubs
Open = Callable[[], NvmlDevices]


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"ecc_uncorrected": 2}, "2 uncorrectable ECC errors"),
        ({"remap_failed": True}, "Remapping a row"),
        ({"remap_pending": True}, "wait to be remapped"),
        ({"retired_pending": True}, "wait to be retired"),
        ({"retired_single": 40, "retired_double": 20}, "60 pages"),
    ],
)
def test_memory_trouble_becomes_a_sentence(gpus: StubState, open_nvml: Open, trouble, words):
    """Each kind of damage is told in one sentence, and the device still answers."""
    gpus.with_gpus(2).change(1, **trouble)
    well, ill = open_nvml().sample()
    assert well.problems == ()
    assert len(ill.problems) == 1
    assert words in ill.problems[0]


def test_healed_damage_is_no_problem(gpus: StubState, open_nvml: Open):
    """A few retired pages are how a GPU stays well."""
    gpus.with_gpus(1).change(0, retired_single=3, retired_double=1)
    assert open_nvml().sample()[0].problems == ()


def test_trouble_that_comes_and_goes_is_followed(gpus: StubState, open_nvml: Open, clock):
    """Health is looked at again every few seconds."""
    gpus.with_gpus(1)
    devices = open_nvml()
    assert devices.sample()[0].problems == ()
    gpus.change(0, ecc_uncorrected=1)
    clock.advance(HEALTH_EVERY_S)
    assert devices.sample()[0].problems
    gpus.change(0, ecc_uncorrected=0)
    clock.advance(HEALTH_EVERY_S)
    assert devices.sample()[0].problems == ()


def test_an_xid_of_the_hardware_is_remembered(gpus: StubState, open_nvml: Open):
    """The event comes once, its sentence stays, and only on its own GPU."""
    gpus.with_gpus(2)
    devices = open_nvml()
    gpus.xid(0, 48)
    assert "XID 48 (uncorrectable memory error)" in devices.sample()[0].problems[0]
    ill, well = devices.sample()
    assert len(ill.problems) == 1
    assert well.problems == ()


def test_an_xid_of_a_faulty_program_is_no_problem(gpus: StubState, open_nvml: Open):
    """A user's illegal memory access takes no GPU out of the pool."""
    gpus.with_gpus(1)
    devices = open_nvml()
    gpus.xid(0, 31).xid(0, 43).xid(0, 13)
    assert devices.sample()[0].problems == ()


def test_xids_from_before_the_start_are_history(gpus: StubState, open_nvml: Open):
    """Only what happens while the agent looks on counts."""
    gpus.with_gpus(1).xid(0, 79)
    assert open_nvml().sample()[0].problems == ()


def test_an_xid_concerns_each_instance_of_its_gpu(gpus: StubState, open_nvml: Open):
    """Instances share the hardware that failed."""
    gpus.with_gpus(1).split(0)
    devices = open_nvml()
    gpus.xid(0, 95)
    assert all("XID 95" in sample.problems[0] for sample in devices.sample())


def test_an_xid_that_memory_tells_better_is_no_problem(gpus: StubState, open_nvml: Open):
    """A row that was remapped, or a display that hung, leaves a GPU as good as new."""
    gpus.with_gpus(1)
    devices = open_nvml()
    gpus.xid(0, 63).xid(0, 94).xid(0, 56)
    assert devices.sample()[0].problems == ()


def test_an_xid_names_the_way_out(gpus: StubState, open_nvml: Open):
    """People need not look it up."""
    gpus.with_gpus(1)
    devices = open_nvml()
    gpus.xid(0, 119)
    assert "reset it with nvidia-smi" in devices.sample()[0].problems[0]


@pytest.mark.parametrize("away_s", [1, LIST_EVERY_S])
def test_a_reset_gpu_has_no_xids(gpus: StubState, open_nvml: Open, clock, away_s):
    """However short it was away; the other one keeps its own."""
    gpus.with_gpus(2)
    devices = open_nvml()
    gpus.xid(0, 119).xid(1, 48)
    devices.sample()
    gpus.lose(0)
    clock.advance(away_s)
    devices.sample()
    gpus.find(0)
    clock.advance(away_s)
    devices.sample()
    assert [len(sample.problems) for sample in devices.sample()] == [0, 1]
    gpus.xid(0, 64)
    assert len(devices.sample()[0].problems) == 1


def test_the_next_agent_knows_the_xids_of_this_one(gpus: StubState, clock, tmp_path: Path):
    """A restart of the agent heals no GPU."""
    gpus.with_gpus(1)
    first = NvmlDevices(clock, xid_record=tmp_path / "xids")
    gpus.xid(0, 119)
    first.sample()
    first.close()
    second = NvmlDevices(clock, xid_record=tmp_path / "xids")
    assert "XID 119" in second.sample()[0].problems[0]
    second.close()
