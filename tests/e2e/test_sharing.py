"""Parts of a device, and workers with several: who shares, who must not, and what becomes of it."""

import fcntl
import os
import re
import signal
from collections.abc import Callable, Iterator

import pytest
from e2e_harness.devices import StubDevices
from e2e_harness.running_pool import MakePool, RunningPool, Setup, strike
from waiting import eventually, stays

from jupyter_gpupool.agent.devices.lock_folder import find_folder

GIB = 2**30
_QUICK = ("--AgentApp.share_grace_s=2", "--AgentApp.verify_within_s=2")


@pytest.fixture(scope="module")
def two_gpus(stubs: Callable[[int], StubDevices]) -> StubDevices:
    """Two stub GPUs of 16 GiB."""
    return stubs(2)


@pytest.fixture(scope="module")
def started(make_pool: MakePool, two_gpus: StubDevices) -> RunningPool:
    """A pool on them that the scenarios share."""
    return make_pool(two_gpus, Setup(agent_options=_QUICK)).start()


@pytest.fixture
def sharing(started: RunningPool) -> Iterator[RunningPool]:
    """The pool, empty at first, with its promises checked at the end."""
    started.wait_free(2)
    yield started
    started.check()
    for claim in list(started.api.claims()):
        started.end(claim["id"])


def test_one_users_parts_share_a_device_and_anothers_do_not(sharing: RunningPool) -> None:
    """Each computes on its own part; a whole device is none that somebody has a part of."""
    ann, bob = sharing.user(sharing.api_of("ann")), sharing.user(sharing.api_of("bob"))
    mine = [ann.ask("claim", gpus=0.5), ann.ask("claim", gpus=1, gpu_memory="8GiB")]
    theirs = bob.ask("claim", gpus=0.25)
    assert [_devices(sharing, claim) == _devices(sharing, theirs) for claim in mine] == [False] * 2
    assert _devices(sharing, mine[0]) == _devices(sharing, mine[1])
    for user, claim in ((ann, mine[0]), (ann, mine[1]), (bob, theirs)):
        assert user.ask("compute", claim_id=claim) == 328350
    assert ann.ask("spills_at", claim_id=mine[0]) == int(8 * GIB * 0.8)
    whole = sharing.api_of("ann").claim(1)
    stays(lambda: sharing.api.phase(whole) == "pending", 1, "it waits")
    sharing.end(theirs)
    sharing.wait_phase(whole, "running")
    assert not _devices(sharing, whole) & _devices(sharing, mine[0])
    ann.end()
    bob.end()


def test_worker_with_several_devices_sees_them_all(sharing: RunningPool) -> None:
    """By their UUIDs, in one process; and nobody else gets any of them."""
    ann = sharing.user(sharing.api_of("ann"))
    claim = ann.ask("claim", gpus=2, gpus_per_worker=2)
    assert set(ann.ask("visible", claim_id=claim).split(",")) == _all_devices(sharing)
    assert len(sharing.workers_of(claim)) == 1
    other = sharing.api_of("ann").claim(1, gpus_per_worker=0.1)
    stays(lambda: sharing.api.phase(other) == "pending", 1, "it waits")
    sharing.end(claim)
    sharing.wait_phase(other, "running")
    ann.end()


def test_worker_that_takes_more_than_its_part_is_warned_and_ended(
    sharing: RunningPool, two_gpus: StubDevices
) -> None:
    """With the numbers and what to do; its neighbour goes on, and it is started again."""
    api = sharing.api_of("ann")
    greedy, modest = api.claim(1, gpus_per_worker=0.5), api.claim(1, gpus_per_worker=0.5)
    for claim in (greedy, modest):
        sharing.wait_phase(claim, "running")
    worker, neighbour = sharing.worker_of(greedy), sharing.worker_of(modest)
    two_gpus.state.grow(worker.pid, 9 * GIB)
    warning = r"uses 9 GiB .* its part is 8 GiB: it is ended unless it frees 1 GiB within 2 s"
    _told(sharing, greedy, warning)
    assert re.search(warning, api.view(greedy)["problem"])
    assert worker.wait_gone(15), "it goes on"
    _told(sharing, greedy, r"started again: .*it used 9 GiB .* its part is 8 GiB")
    sharing.wait_workers(greedy, 1)
    assert neighbour.lives
    assert api.view(greedy)["leases"][0]["restarts"] == 1


def test_agents_death_loses_no_part(sharing: RunningPool) -> None:
    """Workers on one device are adopted, with the lock they share until the last has gone."""
    api = sharing.api_of("ann")
    claims = [api.claim(1, gpus_per_worker=0.5) for _ in range(2)]
    pair = [api.claim(1, gpus_per_worker=0.5) for _ in range(2)]
    for claim in (*claims, *pair):
        sharing.wait_phase(claim, "running")
    [device] = _devices(sharing, claims[0])
    workers = [sharing.worker_of(claim) for claim in (*claims, *pair)]
    _agent_is_replaced(sharing)
    for claim in (*claims, *pair):
        sharing.wait_workers(claim, 1)
    assert all(worker.lives for worker in workers)
    sharing.end(claims[0])
    assert _is_locked(device)
    again = api.claim(1, gpus_per_worker=0.5)
    sharing.wait_phase(again, "running")
    assert _devices(sharing, again) == {device}
    sharing.end(again)
    sharing.end(claims[1])
    eventually(lambda: not _is_locked(device), 5, "its lock is let go")


def test_managers_death_loses_no_part(sharing: RunningPool) -> None:
    """The next one knows what each claim has of a device, and leases no more than is left."""
    api = sharing.api_of("ann")
    claims = [api.claim(1, gpus_per_worker=share) for share in (0.5, 0.3)]
    whole = api.claim(1)
    for claim in (*claims, whole):
        sharing.wait_phase(claim, "running")
    workers = [sharing.worker_of(claim) for claim in (*claims, whole)]
    assert sharing.manager is not None
    strike(sharing.manager, signal.SIGKILL)
    sharing.start_manager()
    sharing.wait_joined(sharing.agent)
    waits, starts = api.claim(1, gpus_per_worker=0.3), api.claim(1, gpus_per_worker=0.2)
    sharing.wait_phase(starts, "running")
    stays(lambda: api.phase(waits) == "pending", 1, "it waits")
    assert all(worker.lives for worker in workers)
    sharing.end(claims[1])
    sharing.wait_phase(waits, "running")
    assert _devices(sharing, waits) == _devices(sharing, claims[0])


def test_agents_death_loses_no_device_of_a_worker_with_several(sharing: RunningPool) -> None:
    """All its locks come back, and all its devices are free when it has gone."""
    claim = sharing.api.claim(1, gpus_per_worker=2)
    sharing.wait_phase(claim, "running")
    worker = sharing.worker_of(claim)
    _agent_is_replaced(sharing)
    sharing.wait_workers(claim, 1)
    assert worker.lives
    assert all(map(_is_locked, _all_devices(sharing)))
    sharing.end(claim)
    sharing.wait_free(2)
    eventually(lambda: not any(map(_is_locked, _all_devices(sharing))), 5, "the locks are let go")


def test_part_is_leased_again_only_when_nothing_of_it_is_left(
    sharing: RunningPool, two_gpus: StubDevices
) -> None:
    """NVML has the last word, and the lease that goes on beside it is no obstacle."""
    ann, bob = sharing.api_of("ann"), sharing.api_of("bob")
    stays_on, goes, elsewhere = (a.claim(1, gpus_per_worker=0.5) for a in (ann, ann, bob))
    for claim in (stays_on, goes, elsewhere):
        sharing.wait_phase(claim, "running")
    [device] = _devices(sharing, goes)
    worker = sharing.worker_of(goes)
    two_gpus.state.add_process(device, worker.pid, GIB)
    ann.release(goes)
    assert worker.wait_gone(10)
    eventually(lambda: _quarantined(sharing, device), 15, "it is quarantined")
    waits = ann.claim(1, gpus_per_worker=0.5)
    stays(lambda: sharing.api.phase(waits) == "pending", 1, "it waits")
    assert (ann.phase(goes), ann.phase(stays_on)) == ("ending", "running")
    two_gpus.state.remove_process(worker.pid)
    sharing.wait_ended(goes)
    sharing.wait_phase(waits, "running")
    assert _devices(sharing, waits) == {device}


def _agent_is_replaced(pool: RunningPool) -> None:
    assert pool.agent is not None
    strike(pool.agent, signal.SIGKILL)
    pool.start_agent()


def _devices(pool: RunningPool, claim_id: str) -> set[str]:
    return {uuid for lease in pool.api.view(claim_id)["leases"] for uuid in lease["devices"]}


def _all_devices(pool: RunningPool) -> set[str]:
    return {str(device["uuid"]) for device in pool.api.get("/devices")}


def _quarantined(pool: RunningPool, uuid: str) -> bool:
    [device] = [each for each in pool.api.get("/devices") if each["uuid"] == uuid]
    return bool(device["health"] == "quarantined" and "Still in use" in device["problem"])


def _told(pool: RunningPool, claim_id: str, pattern: str) -> None:
    eventually(
        lambda: any(re.search(pattern, reason) for reason in pool.api.reasons(claim_id)),
        15,
        f"{claim_id} is told {pattern!r}",
        context=pool.tell(claim_id),
    )


def _is_locked(uuid: str) -> bool:
    path = find_folder(None) / uuid
    fd = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
