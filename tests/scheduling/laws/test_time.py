"""What must hold as time passes: use counts the same however often it is read, and waits end."""

from dataclasses import replace

import pytest
from applied import applied
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.pools import EXAMPLES, LAW, a_claim, a_host, a_pool, a_queue

from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.usage import Usage, charge, usage_at, usage_by_queue

STEP_S = 60.0
BLOCKED_S = 600.0


@LAW
@given(
    changes=st.lists(st.tuples(st.floats(0, 1e5), st.integers(-4, 4)), max_size=8),
    samples=st.lists(st.floats(0, 1e6), max_size=20),
)
def test_use_does_not_depend_on_how_often_it_is_read(changes, samples):
    """Sampled a hundred times or never, a queue has used the same."""
    moments = sorted([*changes, *((at, 0) for at in samples)])
    seldom, often = Usage(), Usage()
    for at_s, change in moments:
        often = charge(often, change * 1000, at_s)
    for at_s, change in sorted(changes):
        seldom = charge(seldom, change * 1000, at_s)
    assert usage_at(often, 1e6) == pytest.approx(usage_at(seldom, 1e6), abs=1e-3)


@LAW
@given(devices=st.integers(1, 4), k=st.sampled_from((0.0, 0.5, 2.0)), each=st.integers(1, 5))
def test_past_use_alone_stops_nobody(devices, k, each):
    """Claims that never end do not take turns: use decides who is next, not who has to go."""
    claims = [a_claim(f"{q}{n}", f"q{q}", since_s=n) for q in "ab" for n in range(each)]
    view = a_pool([a_host("h0", devices)], [a_queue("qa"), a_queue("qb")], claims, usage_weight=k)
    use = {"qa": Usage(at_s=view.now_s), "qb": Usage(at_s=view.now_s)}
    for _ in range(20):
        used = {queue: usage_at(usage, view.now_s) for queue, usage in use.items()}
        view = replace(view, usage=usage_by_queue(view.tree, used))
        decided = plan(view)
        assert not decided.takes
        for grant in decided.grants:
            queue = f"q{grant.claim_id[0]}"
            use[queue] = charge(use[queue], 1000 * len(grant.workers), view.now_s)
        view = applied(view, decided, takes_s=STEP_S)


@settings(LAW, max_examples=max(5, EXAMPLES // 8))
@given(
    limits=st.lists(st.integers(1, 15), min_size=1, max_size=4),
    gang=st.integers(1, 4),
    arrivals=st.lists(st.integers(1, 10), min_size=40, max_size=40),
)
def test_a_blocked_gang_waits_no_longer_than_who_runs(limits, gang, arrivals):
    """It starts within T and the longest limits of what runs before and after T, whoever comes."""
    running = [
        a_claim(f"r{n}", "q", since_s=0.0, time_limit_s=limit * STEP_S)
        for n, limit in enumerate(limits)
    ]
    view = a_pool([a_host("h0", len(limits))], [a_queue("q")], running, blocked_for_s=BLOCKED_S)
    view = applied(view, plan(view), takes_s=0.0)
    begun_s = view.now_s
    wanted = a_claim("g", "q", min(gang, len(limits)), since_s=begun_s)
    view = replace(view, claims=(*view.claims, wanted))
    bound_s = BLOCKED_S + (15 + 10) * STEP_S
    for number, limit in enumerate(arrivals):
        later = a_claim(f"x{number}", "q", since_s=view.now_s, time_limit_s=limit * STEP_S)
        view = applied(replace(view, claims=(*view.claims, later)), plan(view), takes_s=STEP_S)
        view = replace(view, claims=tuple(c for c in view.claims if not _is_over(c, view.now_s)))
        if any(claim.id == "g" and claim.held for claim in view.claims):
            return
        assert view.now_s - begun_s <= bound_s


def _is_over(claim, now_s):
    limit_s = claim.time_limit_s
    return limit_s is not None and bool(claim.held) and claim.started_s + limit_s <= now_s
