"""What makes no sense is refused in one sentence; what is too large is told the numbers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.pools import LAW, NOW_S, a_claim, a_host, a_pool, a_queue, pools

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.scheduling.claim_checks import check_claim
from jupyter_gpupool.scheduling.decisions import Constraint
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import WorkerShape

TREE = grow(("devices",), [a_queue("team", None, 2), a_queue("ann", "team")])

FAULTS = {
    'asks for queue "vision", which is unknown': {"queue": "vision"},
    'asks for queue "team", but claims belong to "ann" below it': {"queue": "team"},
    "starts with 0 workers; it must be 1 or more": {"minimum": 0, "maximum": 0},
    "starts with -1 workers; it must be 1 or more": {"minimum": -1, "maximum": 1},
    "starts with 3 workers but takes no more than 1": {"minimum": 3, "maximum": 1},
    "asks for -1 devices a worker; it must be 0 or more": {"worker": WorkerShape(devices=-1)},
    "asks for 1 of a device; a part is more than 0 and less than 1": {
        "worker": WorkerShape(devices=0, share=1000)
    },
    "asks for 1 whole device and a part of one; it can have either": {
        "worker": WorkerShape(devices=1, share=500)
    },
    "asks for a negative cpu of -1000": {"worker": WorkerShape(cpu=-1000)},
    "has time_limit -5 s; it must be above 0": {"time_limit_s": -5.0},
    "has expected nan s; it must be above 0": {"expected_s": float("nan")},
    "has a deadline 1 min ago": {"deadline_s": NOW_S - 60},
}


@pytest.mark.parametrize(("sentence", "terms"), FAULTS.items(), ids=list(FAULTS))
def test_a_claim_that_makes_no_sense_is_refused(sentence, terms):
    """One sentence names the claim, what is wrong with it, and the numbers."""
    claim = replace(a_claim("c1", "ann"), **terms)
    with pytest.raises(BadRequest) as refused:
        check_claim(claim, TREE, NOW_S)
    assert str(refused.value) == f'Claim "c1" {sentence}.'


@LAW
@given(view=pools())
def test_sound_claims_are_not_refused(view):
    """Whatever the laws are tried on passes the door."""
    for claim in view.claims:
        check_claim(claim, view.tree, view.now_s)


@LAW
@given(sizes=st.lists(st.integers(0, 4), max_size=4), wanted=st.integers(1, 20))
def test_a_gang_larger_than_the_pool_is_told_so(sizes, wanted):
    """Never possible, with what is wanted, what has joined, and on how many hosts."""
    hosts = [a_host(f"h{n}", size) for n, size in enumerate(sizes)]
    decided = plan(a_pool(hosts, [a_queue("q")], [a_claim("c1", "q", wanted)]))
    if wanted <= sum(sizes):
        assert len(decided.grants) == 1
        return
    (wait,) = decided.waits
    assert wait.constraint is Constraint.NEVER
    assert f"{wanted} device" in wait.reason
    assert f"{sum(sizes)} joined" in wait.reason
