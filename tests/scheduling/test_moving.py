"""Moves: whoever has room elsewhere goes there, so that a claim fits; nobody else is asked."""

from dataclasses import replace
from random import Random

import pytest
from carried_out import at_rest
from gap_world import a_claim, a_host, a_queue, a_view, on

from jupyter_gpupool.pool.rules import Rules
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import WorkerShape

HALF = WorkerShape(devices=0, share=500)


def a_pool(*held, wants: int = 1) -> PoolView:
    """Two hosts of two devices, on which these hold all; one more claim wants so many devices."""
    claims = [replace(claim, started_s=0.0) for claim in held]
    claims.append(a_claim("wants", wants, since_s=5.0))
    view = a_view([a_host("x", 2), a_host("y", 2)], claims, queues=[a_queue("q", 4000)])
    return replace(view, rules=Rules(may_move=True, blocked_for_s=1e9))


def test_halves_go_together_so_that_a_device_comes_free():
    """The whole devices beside them are asked first, but there is no room for these elsewhere."""
    wholes = [a_claim(f"asked first {at}", held=on(at)) for at in ("x-1", "y-1")]
    halves = [a_claim(f"half {at}", held=on(at), worker=HALF) for at in ("x-0", "y-0")]
    decided = plan(a_pool(*wholes, *halves))
    assert [move.claim_id for move in decided.moves] in (["half x-0"], ["half y-0"])
    assert [promise.claim_id for promise in decided.promises] == ["wants"]
    assert not decided.takes


def test_a_neighbour_goes_over_so_that_two_are_together():
    """Two devices are free on two hosts, and two are wanted on one."""
    view = a_pool(a_claim("one", held=on("x-0")), a_claim("two", held=on("y-0")))
    wants = replace(view.claims[-1], worker=WorkerShape(devices=2))
    decided = plan(replace(view, claims=(*view.claims[:-1], wants)))
    assert len(decided.moves) == 1
    assert [promise.claim_id for promise in decided.promises] == ["wants"]


def test_nobody_moves_where_there_is_no_room():
    """A full pool has nowhere to go to."""
    view = a_pool(*(a_claim(at, held=on(at)) for at in ("x-0", "x-1", "y-0", "y-1")))
    assert not plan(view).moves


def scattered(**held) -> PoolView:
    """One device of each of two hosts is held; a claim wants two together."""
    view = a_pool(a_claim("one", held=on("x-0"), **held), a_claim("two", held=on("y-0"), **held))
    wants = replace(view.claims[-1], worker=WorkerShape(devices=2))
    return replace(view, claims=(*view.claims[:-1], wants))


def test_nobody_moves_who_cannot_hibernate():
    """They would lose what they have on the way."""
    assert not plan(scattered(can_hibernate=False)).moves


def test_worker_to_spare_moves_though_its_claim_cannot_hibernate():
    """Its claim goes on without it meanwhile."""
    pair = a_claim("pair", 2, minimum=1, held=on("x-0", "y-0"), can_hibernate=False)
    view = a_pool(pair)
    wants = replace(view.claims[-1], worker=WorkerShape(devices=2))
    [move] = plan(replace(view, claims=(pair, wants))).moves
    assert (move.claim_id, len(move.workers)) == ("pair", 1)


def test_nobody_moves_for_growth():
    """A claim that has its minimum does not disturb others for more."""
    view = scattered()
    wants = replace(view.claims[-1], minimum=0)
    assert not plan(replace(view, claims=(*view.claims[:-1], wants))).moves


def crowded(most_moved: int) -> PoolView:
    """Four devices on each of two hosts, two of each held; a claim wants four together."""
    held = [a_claim(at, held=on(at), started_s=0.0) for at in ("x-0", "x-1", "y-0", "y-1")]
    wants = a_claim("wants", since_s=5.0, worker=WorkerShape(devices=4))
    view = a_view([a_host("x", 4), a_host("y", 4)], [*held, wants], queues=[a_queue("q", 8000)])
    rules = Rules(may_move=True, most_moved=most_moved, blocked_for_s=1e9)
    return replace(view, rules=rules)


@pytest.mark.parametrize(("most_moved", "moved"), [(2, 2), (1, 0)])
def test_no_more_move_than_the_policy_allows(most_moved, moved):
    """Two would have to; where one may, nobody does."""
    decided = plan(crowded(most_moved))
    assert (len(decided.moves), len(decided.promises)) == (moved, moved // 2)


def test_what_would_do_is_told_where_nobody_may_move():
    """So many claims, in the sentence that says why it waits; nothing is decided by that."""
    view = scattered()
    decided = plan(replace(view, rules=replace(view.rules, may_move=False, tells_moves=True)))
    assert decided.changes_nothing
    [wait] = decided.waits
    assert wait.moves == 1
    assert wait.reason == (
        "Waiting for 2 of 2 devices; enough are free, but not together;"
        " it would fit if 1 claim moved."
    )


def test_what_would_not_do_is_not_told():
    """Too many would have to move."""
    view = crowded(1)
    told = replace(view.rules, may_move=False, tells_moves=True)
    [wait] = plan(replace(view, rules=told)).waits
    assert wait.moves == 0
    assert "moved" not in wait.reason


@pytest.mark.parametrize("seed", range(20))
def test_all_are_where_they_were_to_go_once_it_is_carried_out(seed):
    """Whoever moves has as many workers as before, the gang has its own, and nobody moves back."""
    dice = Random(seed)
    taken = [f"{host}-{n}" for host in "xyz" for n in range(4) if dice.random() < 0.5]
    held = [a_claim(at, held=on(at), started_s=0.0) for at in taken]
    wants = a_claim("wants", since_s=5.0, worker=WorkerShape(devices=4))
    view = a_view([a_host(h, 4) for h in "xyz"], [*held, wants], queues=[a_queue("q", 12000)])
    view = replace(view, rules=Rules(may_move=True, blocked_for_s=1e9))
    after, decided = at_rest(view)
    holds = {claim.id: len(claim.held) for claim in after.claims}
    assert holds == dict.fromkeys(taken, 1) | {"wants": int(len(taken) <= 8)}
    assert not decided.moves
