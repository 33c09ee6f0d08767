"""Moves: whoever has room elsewhere goes there, so that a claim fits; nobody else is asked."""

from dataclasses import replace

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
