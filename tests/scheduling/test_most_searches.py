"""A pass makes room for so many claims at most, and nobody behind them is passed over for ever."""

from dataclasses import replace

from carried_out import passes
from gap_world import a_claim, a_host, a_queue, a_view, on

from jupyter_gpupool.pool.rules import Rules
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import WorkerShape

PAIR = WorkerShape(devices=2)


def a_full_pool(apart: int, together: int, most: int) -> PoolView:
    """In each queue a claim of higher rank wants two devices of one host from those of lower rank.

    In the first queues these are on two hosts, where nobody can help, in the others on one.
    """
    hosts, claims, queues = [], [], []
    for number in range(apart + together):
        queue, high = f"q{number:02}", a_claim(f"high{number}", 1, worker=PAIR, priority=1)
        if number < apart:
            hosts += [a_host(f"{queue}a", 1), a_host(f"{queue}b", 1)]
            lower = [a_claim(f"{name}{number}", held=on(f"{queue}{name}-0")) for name in "ab"]
        else:
            hosts.append(a_host(queue, 2))
            lower = [a_claim(f"c{number}", 2, held=on(f"{queue}-0", f"{queue}-1"))]
        queues.append(a_queue(queue, 2000))
        claims += [replace(claim, queue=queue, started_s=0.0) for claim in lower]
        claims.append(replace(high, queue=queue))
    view = a_view(hosts, claims, queues=queues)
    return replace(view, rules=Rules(blocked_for_s=1e9, most_searches=most))


def test_who_looks_in_vain_keeps_nobody_from_its_turn():
    """However many there are, and however few may be helped in one pass."""
    decided = plan(a_full_pool(apart=8, together=1, most=1))
    assert [promise.claim_id for promise in decided.promises] == ["high8"]
    assert not decided.unfinished


def test_the_next_pass_goes_on_where_the_last_one_stopped():
    """One by one all are helped, in the order of the line, and the pass after them is finished."""
    decided = [made for _, made in passes(a_full_pool(apart=3, together=3, most=1))]
    helped = [promise.claim_id for made in decided for promise in made.promises]
    assert helped == ["high3", "high4", "high5"]
    assert [made.unfinished for made in decided if made.promises] == [True, True, False]
