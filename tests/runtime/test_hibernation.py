"""Hibernation for real: results go to the holder and come back, whatever they are."""

import asyncio
import os
import stat
import time
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import Event, wait

from jupyter_gpupool.protocol.keeping import HOLDER_NAME, KeepPhase, UnkeptReason, Wish

from .hibernating import client_of, hibernate, keeping, order, resume, until_phase

pytestmark = pytest.mark.asyncio(loop_scope="module")
MIB = 2**20
SIZES = (1, 64 * MIB - 1, 64 * MIB, 64 * MIB + 1, 256 * MIB)


def _bytes_of(size):
    return np.arange(size, dtype=np.uint8)


def _sum_of(array):
    return array.nbytes, zlib.crc32(array)


def _results_folder(claim):
    return claim.folder / "results"


@pytest.mark.parametrize("workers_listen", ["127.0.0.1", "127.0.0.2"], ids=["here", "elsewhere"])
@pytest.mark.parametrize("memory_bytes", [2**31, MIB], ids=["in memory", "on disk"])
async def test_results_of_every_size_come_back_equal(host, claim, memory_bytes, workers_listen):
    """Also those that a message carries in pieces; nothing is computed anew.

    From the holder's own host, and over the network from another one.
    """
    state = await host.up(claim, "lease-a", "lease-b", listen=workers_listen)
    async with client_of(claim, state) as client:
        results = client.map(_bytes_of, SIZES)
        marks = client.map(lambda n: (n, os.getpid(), time.time()), range(20))
        sums = await client.gather(client.map(_sum_of, results, pure=False))
        before = await client.gather(marks)
        kept = await hibernate(host, claim, memory_bytes=memory_bytes)
        assert kept.held == kept.results == len(SIZES) + 20
        await resume(host, claim, "lease-c", "lease-d", listen=workers_listen)
        assert await client.gather(client.map(_sum_of, results, pure=False)) == sums
        assert await client.gather(marks) == before


async def test_result_of_a_gibibyte_comes_back_equal(host, claim):
    """Sixteen frames of a message, and one file."""
    large = {"memory_limit_bytes": 2**33}
    state = await host.up(claim, "lease-a", **large)
    async with client_of(claim, state) as client:
        result = client.submit(_bytes_of, 2**30)
        before = await client.submit(_sum_of, result, pure=False)
        await hibernate(host, claim, memory_bytes=MIB)
        await resume(host, claim, "lease-c", **large)
        assert await client.submit(_sum_of, result, pure=False) == before


async def test_workers_end_as_retired_and_the_holder_as_good(host, claim):
    """The agent takes neither end for a crash, and nothing stays on the disk."""
    state = await host.up(claim, "lease-a", "lease-b")
    async with client_of(claim, state) as client:
        result = await client.scatter([1, 2, 3])
        await hibernate(host, claim)
        assert await host.end_of(claim, "lease-a") == 0
        assert await host.end_of(claim, "lease-b") == 0
        assert set(host.state_of(claim).retired) == {"lease-a", "lease-b"}
        await resume(host, claim, "lease-c")
        assert await host.end_of(claim, HOLDER_NAME) == 0
        assert await client.gather(result) == [1, 2, 3]
    assert not _results_folder(claim).exists()


async def test_results_of_all_kinds_come_back_equal(host, claim):
    """Plain Python, arrays, tables, and classes that only the notebook has."""

    class Mine:
        def __init__(self, text):
            self.text = text

    frame = pd.DataFrame({"a": range(1000), "b": [str(n) for n in range(1000)]})
    kinds = [
        {"a": [1, "two", 3.0, None], "b": (np.arange(10), {"c": b"d"})},
        [np.arange(n) for n in range(20)],
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.empty(0),
        frame,
        b"",
        10**100,
    ]
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        results = client.map(lambda kind: kind, kinds, pure=False)
        mine = client.submit(Mine, "only here", actor=False)
        await wait([*results, mine])
        await hibernate(host, claim, memory_bytes=100)
        await resume(host, claim, "lease-c")
        assert await client.submit(lambda it: it.text, mine) == "only here"
        for result, kind in zip(await client.gather(results), kinds, strict=True):
            assert type(result) is type(kind)
            assert repr(result) == repr(kind)


async def test_result_that_only_a_device_can_read_is_kept(host, claim):
    """The holder never makes an object of it."""

    class OnDevice:
        def __init__(self, value):
            self.value = value

        def __reduce__(self):
            return _read_on_device, (self.value,)

    def _read_on_device(value):
        if os.environ.get("HAS_DEVICE") != "1":
            raise RuntimeError("there is no device here")
        return OnDevice(value)

    worker = {"env": {"HAS_DEVICE": "1"}}
    state = await host.up(claim, "lease-a", **worker)
    async with client_of(claim, state) as client:
        result = client.submit(lambda: OnDevice(42), pure=False)
        await wait(result)
        await hibernate(host, claim, memory_bytes=0)
        await resume(host, claim, "lease-c", **worker)
        assert await client.submit(lambda it: it.value, result, pure=False) == 42


async def test_tasks_wait_while_hibernated_and_run_afterwards(host, claim):
    """No task lands on the holder; those that need kept results find them."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        (data,) = await client.scatter([np.arange(10)])
        await hibernate(host, claim)
        waiting = client.submit(np.sum, data), client.submit(sum, [1, 2], pure=False)
        await host.until(lambda: host.activities[claim.claim_id][-1].runnable == 2)
        assert [future.status for future in waiting] == ["pending", "pending"]
        await resume(host, claim, "lease-c")
        assert await client.gather(list(waiting)) == [45, 3]


async def test_running_task_runs_again(host, claim):
    """It is let go of, with those that wait behind it, and begun anew by the next worker."""

    def work(folder):
        (Path(folder) / f"began-{time.time_ns()}").touch()
        Event("go").wait(30)
        return "done"

    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        running = client.submit(work, str(claim.folder), pure=False)
        behind = client.submit(str.upper, running)
        await host.until(lambda: host.activities[claim.claim_id][-1].processing)
        await hibernate(host, claim)
        await Event("go", client=client).set()
        await resume(host, claim, "lease-c")
        assert await behind == "DONE"
    assert len(list(claim.folder.glob("began-*"))) in (1, 2)


async def test_claim_without_results_hibernates_and_resumes(host, claim):
    """There is nothing to keep, and devices to give back."""
    await host.up(claim, "lease-a")
    kept = await hibernate(host, claim)
    assert (kept.phase, kept.results) == (KeepPhase.HIBERNATED, 0)
    await resume(host, claim, "lease-c")
    assert host.is_complete(claim, ["lease-c"])


async def test_results_can_be_read_while_hibernated(host, claim):
    """A user who only looks at a result needs no device for it."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        result = client.submit(_bytes_of, 65 * MIB)
        await wait(result)
        await hibernate(host, claim, memory_bytes=MIB)
        assert (await result).nbytes == 65 * MIB


async def test_released_result_leaves_the_holder(host, claim):
    """What nobody wants any more takes no room, in memory or on the disk."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        result = client.submit(_bytes_of, MIB)
        await wait(result)
        await hibernate(host, claim, memory_bytes=100)
        (file,) = _results_folder(claim).iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        result.release()
        async with asyncio.timeout(60):
            while file.exists():
                await client.who_has()


async def test_results_in_memory_go_to_files_when_it_is_quiet(host, claim):
    """The devices were given back before; the host gets its memory back as well."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        results = client.map(_bytes_of, [MIB, 2 * MIB, 3 * MIB])
        sums = await client.gather(client.map(_sum_of, results, pure=False))
        await hibernate(host, claim)
        async with asyncio.timeout(60):
            while len(list(_results_folder(claim).iterdir())) < len(results):
                await client.who_has()
        await resume(host, claim, "lease-c")
        assert await client.gather(client.map(_sum_of, results, pure=False)) == sums


async def test_holder_is_no_worker_to_clients(host, claim):
    """It is not counted, not waited for, and runs nothing."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        await hibernate(host, claim)
        assert await client.run(os.getpid) == {}
        assert (await client.scheduler.identity())["workers"] == {}
        with pytest.raises(TimeoutError):
            await client.wait_for_workers(1, timeout=0.3)
        (holder,) = (await client.scheduler.ncores()).keys()
        with pytest.raises(Exception, match="runs no code"):
            await client.run(os.getpid, workers=[holder])


async def test_restart_forgets_the_results_and_keeps_the_holder(host, claim):
    """It returns at once: there is no worker to wait for."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        sent = await client.scatter([42])
        assert (await hibernate(host, claim)).held == len(sent)
        await client.restart(timeout=20)
        assert not any((await client.scheduler.has_what()).values())
        later = client.submit(sum, [1, 2], pure=False)
        await resume(host, claim, "lease-c")
        assert await later == 3


async def test_plugin_of_a_user_reaches_no_holder(host, claim):
    """A plugin may need a device; new workers get it all the same."""
    from distributed import WorkerPlugin  # noqa: PLC0415 - to be sent by value

    class Marks(WorkerPlugin):
        def setup(self, worker):
            (Path(worker.local_directory).parent / f"marked-{os.getpid()}").touch()

    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        await client.register_plugin(Marks())
        await hibernate(host, claim)
        await resume(host, claim, "lease-c")
    marked = {int(path.name.split("-")[1]) for path in claim.folder.rglob("marked-*")}
    assert marked == {host.pid_of(claim, "lease-a"), host.pid_of(claim, "lease-c")}


async def test_task_that_comes_on_the_way_there_is_told(host, claim):
    """It was too late to be called off; nothing else would have its claim resumed."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        order(host, claim, Wish.HIBERNATED)
        await host.until(lambda: keeping(host, claim).surveyed)
        await wait(client.submit(sum, [1, 2], pure=False))
        await host.fork_holder(claim)
        assert (await until_phase(host, claim, KeepPhase.HIBERNATED)).wanted


async def test_hibernating_twice_keeps_what_came_in_between(host, claim):
    """Results of the first life and of the second one."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        first = client.submit(sum, [1, 2], pure=False)
        await wait(first)
        await hibernate(host, claim)
        await resume(host, claim, "lease-b")
        await host.end_of(claim, HOLDER_NAME)
        second = client.submit(sum, [first, 3], pure=False)
        await wait(second)
        kept = await hibernate(host, claim)
        assert kept.held == 2
        await resume(host, claim, "lease-c")
        assert await client.gather([first, second]) == [3, 6]


async def test_survey_says_beforehand_what_cannot_be_kept(host, claim):
    """Nothing is done yet: the warning can name the key and the reason."""

    class Unwritable:
        def __reduce__(self):
            raise TypeError("not for sending")

    class Unreadable:
        def __reduce__(self):
            return int, ("no number",)

    class Counter:
        pass

    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        futures = [
            client.submit(Counter, actor=True, key="counter"),
            client.submit(lambda: [Unwritable()], key="unwritable"),
            client.submit(lambda: {"a": Unreadable()}, key="unreadable"),
            client.submit(_bytes_of, 3 * MIB, key="large"),
            client.submit(_bytes_of, MIB, key="small"),
        ]
        await wait(futures)
        order(host, claim, Wish.SURVEYED, quota_bytes=2 * MIB)
        await host.until(lambda: keeping(host, claim).surveyed)
        found = {each.key: each.reason for each in keeping(host, claim).unkept}
        assert found == {
            "counter": UnkeptReason.ACTOR,
            "unwritable": UnkeptReason.UNWRITABLE,
            "unreadable": UnkeptReason.UNREADABLE,
            "large": UnkeptReason.TOO_LARGE,
        }
        assert keeping(host, claim).phase is KeepPhase.AWAKE
        assert (await futures[-1]).nbytes == MIB


async def test_claim_with_an_actor_is_left_as_it_was(host, claim):
    """The actor is named; it goes on living, and tasks go on running."""

    class Counter:
        def __init__(self):
            self.count = 0

        def increase(self):
            self.count += 1
            return self.count

    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        counter = await client.submit(Counter, actor=True, key="my-counter")
        assert await counter.increase() == 1
        refused = await hibernate(host, claim)
        assert refused.phase is KeepPhase.REFUSED
        assert [each.key for each in refused.unkept] == ["my-counter"]
        assert await counter.increase() == 2
        assert await client.submit(sum, [1, 2], pure=False) == 3
        order(host, claim, Wish.AWAKE)
        await until_phase(host, claim, KeepPhase.AWAKE)
