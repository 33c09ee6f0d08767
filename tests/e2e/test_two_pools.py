"""Two users' pools on one host, on the same devices: one device, one pool at a time."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from e2e_harness.devices import TestDevices
from e2e_harness.interpreters import open_to
from e2e_harness.running_pool import MakePool, RunningPool, Setup
from waiting import eventually

NOBODY = 65534


@pytest.fixture(scope="module")
def shared_devices(devices: Callable[[int], TestDevices]) -> TestDevices:
    """Two devices that both pools see."""
    return devices(2)


@pytest.fixture(scope="module")
def mine(make_pool: MakePool, shared_devices: TestDevices) -> RunningPool:
    """The first user's pool."""
    return make_pool(shared_devices).start()


@pytest.fixture(scope="module")
def theirs(
    make_pool: MakePool, shared_devices: TestDevices, folders: Callable[[], Path]
) -> RunningPool:
    """The second user's pool; another uid where the tests may choose one."""
    if os.geteuid() != 0:
        return make_pool(shared_devices).start()
    interpreter = open_to(NOBODY, folders())
    if interpreter is None:
        pytest.skip("no Python here that another user may run")
    return make_pool(shared_devices, Setup(as_uid=NOBODY, interpreter=interpreter)).start()


def test_device_of_another_pool_is_shown_and_left_alone(
    mine: RunningPool, theirs: RunningPool
) -> None:
    """The loser waits, sees who holds the devices, and gets them once they are given back."""
    first = mine.api.claim(2)
    mine.wait_phase(first, "running")
    second = theirs.api.claim(1)
    assert theirs.wait_phase(second, "pending", "starting", "running") != "running"
    eventually(lambda: _held(theirs) == 2, 15, "both devices are held elsewhere")
    told = "2 held by another pool on the host"
    eventually(
        lambda: told in theirs.api.view(second)["wait"]["reason"], 15, "it says who has them"
    )
    mine.end(first)
    theirs.wait_phase(second, "running")
    assert sum(_held(mine) for _ in range(1)) <= 1
    theirs.end(second)


def test_part_in_one_pool_is_all_of_the_device_to_another(
    mine: RunningPool, theirs: RunningPool
) -> None:
    """What is left of it is for its own pool, until its last part is given back."""
    parts = [mine.api.claim(1, gpus_per_worker=share) for share in (0.3, 0.4)]
    for claim_id in parts:
        mine.wait_phase(claim_id, "running")
    eventually(lambda: _held(theirs) == 1, 15, "it is held elsewhere")
    both = theirs.api.claim(2)
    mine.end(parts[0])
    assert _held(theirs) == 1
    assert theirs.api.phase(both) == "pending"
    mine.end(parts[1])
    theirs.wait_phase(both, "running")
    theirs.end(both)


def test_two_pools_that_race_never_share_a_device(mine: RunningPool, theirs: RunningPool) -> None:
    """Whoever wins a device has it alone; both pools' claims are served in the end."""
    for _ in range(3):
        asked = [(pool, pool.api.claim(1)) for pool in (mine, theirs, mine, theirs)]
        while asked:
            # Not in order: one pool may win both devices, and the other waits until it gives back.
            pool, claim_id = served = eventually(
                partial(_one_that_runs, asked), 30, "one of them runs"
            )
            _assert_apart(mine, theirs)
            pool.end(claim_id)
            asked.remove(served)
    mine.check()
    theirs.check()


def _one_that_runs(asked: list[tuple[RunningPool, str]]) -> tuple[RunningPool, str] | None:
    return next((one for one in asked if one[0].api.phase(one[1]) == "running"), None)


def _held(pool: RunningPool) -> int:
    return sum(device["held_elsewhere"] for device in pool.api.get("/devices"))


def _assert_apart(mine: RunningPool, theirs: RunningPool) -> None:
    ours, others = (
        {uuid for r in p.records() if r.process.lives for uuid in r.devices} for p in (mine, theirs)
    )
    assert not ours & others, f"both pools have workers on {ours & others}"
