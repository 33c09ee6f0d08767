"""Samples, judges and remembers devices."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from jupyter_gpupool.agent import device_watch
from jupyter_gpupool.agent.device_watch import DeviceWatch, Pace
from jupyter_gpupool.agent.devices.lock import DeviceLocks
from jupyter_gpupool.agent.foreign import described
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.reports import device_reports
from jupyter_gpupool.agent.seen import Stage
from jupyter_gpupool.agent.table import Table
from jupyter_gpupool.pool.device import Device, DeviceProcess, DeviceSample

MIB = 2**20


class OneGpu:
    """Devices that say what a test wants; what a driver is to the agent."""

    def __init__(self) -> None:
        self.device = Device(uuid="GPU-1", index=0, model="A100", memory_bytes=80 * MIB)
        self.says = {"memory_used_bytes": 0}

    def list(self):
        return (self.device,)

    def sample(self):
        return (DeviceSample(uuid="GPU-1", at=datetime.now(UTC), **self.says),)

    def close(self) -> None:
        pass


class Watching:
    """A watch of one GPU, and the leases it freed."""

    def __init__(self, folder) -> None:
        self.gpu = OneGpu()
        self.table = Table(lambda: None)
        self.locks = DeviceLocks(folder)
        self.dirty = {}
        pace = Pace(verify_within_s=0)
        self.watch = DeviceWatch(
            self.gpu, self.locks, self.table, pace, dirty=lambda: dict(self.dirty)
        )
        self.freed = []

    async def look(self, foreign=()) -> bool:
        return await self.watch.look(lambda _: foreign)

    def judge(self) -> None:
        self.watch.judge(self.freed.append)


@pytest.fixture
def watching(tmp_path):
    one = Watching(tmp_path / "locks")
    yield one
    one.locks.close()


@pytest.fixture
def freeing(watching, worker_seen):
    """A lease whose processes have just gone."""
    seen = worker_seen(stage=Stage.FREEING, device="GPU-1", process=None, gone_at_s=0.0)
    watching.table.put(seen)
    return seen


async def test_empty_device_is_freed(watching, freeing) -> None:
    """By a sample that was taken after its processes had gone."""
    await watching.look()
    watching.judge()
    assert watching.freed == [freeing]


async def test_device_whose_claim_left_something_is_not_free(watching, freeing) -> None:
    """Until that is gone; the report says what it is, whether or not the lease has ended."""
    await watching.look()
    watching.dirty["GPU-1"] = "Its last claim left what cannot be removed: x."
    watching.judge()
    assert watching.freed == []
    assert watching.table[freeing.key].problem == watching.dirty["GPU-1"]
    assert watching.watch.quarantined == watching.dirty
    watching.dirty.clear()
    watching.judge()
    assert (len(watching.freed), watching.watch.quarantined) == (1, {})


async def test_older_sample_proves_nothing(watching, worker_seen) -> None:
    """Memory that was free before may be in use since."""
    await watching.look()
    late = worker_seen(stage=Stage.FREEING, device="GPU-1", process=None, gone_at_s=10**12)
    watching.table.put(late)
    watching.judge()
    assert watching.freed == []


async def test_device_in_use_is_quarantined_until_it_is_not(watching, freeing) -> None:
    """The lease says why, and ends by itself once NVML agrees."""
    watching.gpu.says = {"memory_used_bytes": 70_000 * MIB}
    await watching.look()
    watching.judge()
    assert "still in use" in watching.watch.quarantined["GPU-1"]
    assert "still in use" in watching.table[freeing.key].problem
    watching.gpu.says = {"memory_used_bytes": 0}
    await watching.look()
    watching.judge()
    assert len(watching.freed) == 1
    assert watching.watch.quarantined == {}


async def test_news_are_problems_and_neighbours_not_numbers(watching) -> None:
    """A report a second for a temperature would be too much."""
    await watching.look()
    watching.gpu.says = {"memory_used_bytes": 5, "temperature_c": 60}
    assert not await watching.look()
    assert await watching.look((DeviceProcess(pid=7, memory_bytes=1),))
    watching.gpu.says = {"lost": True}
    assert await watching.look()


async def test_lock_of_another_pool_is_seen(watching, tmp_path) -> None:
    """And no longer once it is gone."""
    others = DeviceLocks(tmp_path / "locks")
    others.acquire("GPU-1")
    await watching.look()
    assert watching.watch.held_elsewhere == {"GPU-1"}
    others.close()
    await watching.look()
    assert watching.watch.held_elsewhere == frozenset()


async def test_memory_in_use_is_the_next_lease_baseline(watching) -> None:
    """Unknown before the first sample."""
    assert watching.watch.memory_used_beside("GPU-1") is None
    watching.gpu.says = {"memory_used_bytes": 3}
    await watching.look()
    assert watching.watch.memory_used_beside("GPU-1") == 3


def test_foreign_process_is_described_without_its_arguments() -> None:
    """They may hold secrets; the program's name says enough."""
    found = described(DeviceProcess(pid=1, memory_bytes=None))
    assert "/" not in found.command
    assert " " not in found.command


async def test_worker_given_up_before_it_ran_is_not_on_its_device(
    watching, worker_seen, tmp_path
) -> None:
    """Another pool was quicker: the device is theirs, and is said to be."""
    others = DeviceLocks(tmp_path / "locks")
    others.acquire("GPU-1")
    watching.table.put(worker_seen(stage=Stage.FAILED, device="GPU-1", process=None))
    assert watching.watch.look_at_locks()
    others.close()
    [report] = device_reports(watching.table, watching.watch)
    assert report.state.held_elsewhere
    assert report.state.in_use_by == ()


async def test_lock_that_cannot_be_used_counts_as_held(watching, tmp_path) -> None:
    """Any user may put something in its place; the watch goes on and says what is there."""
    (tmp_path / "locks" / "GPU-1").mkdir()
    await watching.look()
    [report] = device_reports(watching.table, watching.watch)
    assert report.state.held_elsewhere
    assert "no plain file" in report.state.problem


async def test_lock_that_was_taken_away_is_said(watching, tmp_path) -> None:
    """The device is leased to nobody else here until it is settled."""
    watching.locks.acquire("GPU-1")
    (tmp_path / "locks" / "GPU-1").unlink()
    (tmp_path / "locks" / "GPU-1").symlink_to("nowhere")
    assert watching.watch.look_at_locks()
    assert "was taken away" in watching.watch.quarantined["GPU-1"]


async def test_silent_driver_quarantines_its_devices(watching, monkeypatch) -> None:
    """An old sample says nothing of now; the first new one ends it."""
    await watching.look()
    assert watching.watch.quarantined == {}
    monkeypatch.setattr(device_watch, "_UNKNOWN_AFTER_S", 0)
    [report] = device_reports(watching.table, watching.watch)
    assert not report.state.may_be_leased
    assert "has not answered" in report.state.problem
    monkeypatch.undo()
    await watching.look()
    assert watching.watch.quarantined == {}


async def test_desktop_is_no_part_of_a_baseline(watching) -> None:
    """What it draws with is left out before a lease as it is after."""
    desktop = DeviceProcess(pid=8, memory_bytes=30, graphics_only=True)
    watching.gpu.says = {"memory_used_bytes": 50, "processes": (desktop,)}
    await watching.look()
    assert watching.watch.memory_used_beside("GPU-1") == 20


async def test_watch_that_is_told_to_end_as_it_wakes_ends(watching) -> None:
    """Else an agent that is told to exit would stay."""
    pausing = asyncio.create_task(watching.watch._pause(lambda: None))
    for _ in range(3):
        await asyncio.sleep(0)
    watching.watch.look_soon()
    pausing.cancel()
    await asyncio.wait([pausing], timeout=10)
    assert pausing.cancelled()


@pytest.fixture
def sharing(watching, worker_seen):
    """A lease that goes and one that stays, with half of the device each."""
    going = worker_seen(
        key=ProcessKey("c0", 1, "l0"),
        stage=Stage.FREEING,
        device="GPU-1",
        share=500,
        process=None,
        gone_at_s=0.0,
    )
    staying = worker_seen(key=ProcessKey("c1", 1, "l1"), device="GPU-1", share=500)
    watching.table.put(going)
    watching.table.put(staying)
    watching.watch._owners_on = lambda _: {7: staying.key}
    return going


async def test_part_is_freed_beside_one_that_goes_on(watching, sharing) -> None:
    """Whoever stays may fill its own part."""
    used = DeviceProcess(pid=7, memory_bytes=30 * MIB)
    watching.gpu.says = {"memory_used_bytes": 30 * MIB, "processes": (used,)}
    await watching.look((used,))
    watching.judge()
    assert watching.freed == [sharing]
    assert watching.watch.memory_used_beside("GPU-1") == 0


async def test_process_that_nobody_who_stays_has_keeps_a_part(watching, sharing) -> None:
    """It may be what the lease that goes has left."""
    processes = tuple(DeviceProcess(pid=pid, memory_bytes=MIB) for pid in (7, 8))
    watching.gpu.says = {"memory_used_bytes": 2 * MIB, "processes": processes}
    await watching.look()
    watching.judge()
    assert watching.freed == []
    assert "pid 8" in watching.watch.quarantined["GPU-1"]


async def test_share_that_nobody_can_watch_is_said(watching, sharing) -> None:
    """The device stays leased; its people know what is not looked after."""
    watching.table.forget(sharing.key)
    used = DeviceProcess(pid=7, memory_bytes=None)
    watching.gpu.says = {"memory_used_bytes": MIB, "processes": (used,)}
    await watching.look()
    [report] = device_reports(watching.table, watching.watch)
    assert "more than their part" in report.state.problem


async def test_worker_with_several_devices_frees_them_together(watching, worker_seen) -> None:
    """One that is not free keeps them all, and is the one that is quarantined."""
    seen = worker_seen(
        stage=Stage.FREEING, device="GPU-1", further=("GPU-2",), process=None, gone_at_s=0.0
    )
    watching.table.put(seen)
    other = replace(watching.gpu.device, uuid="GPU-2")
    watching.gpu.list = lambda: (watching.gpu.device, other)
    used = {"GPU-1": 0, "GPU-2": 70_000 * MIB}
    watching.gpu.sample = lambda: tuple(
        DeviceSample(uuid=uuid, at=datetime.now(UTC), memory_used_bytes=size)
        for uuid, size in used.items()
    )
    await watching.look()
    watching.judge()
    assert (watching.freed, list(watching.watch.quarantined)) == ([], ["GPU-2"])
    used["GPU-2"] = 0
    await watching.look()
    watching.judge()
    assert [lease.key for lease in watching.freed] == [seen.key]
