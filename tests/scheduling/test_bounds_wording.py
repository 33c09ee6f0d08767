"""What a limit or a guarantee has against a claim is said of what it is a limit of."""

from dataclasses import replace

import pytest
from service_pool import a_claim, a_host

from jupyter_gpupool.pool.rules import Rules
from jupyter_gpupool.scheduling.amounts import BASE_KINDS, NO_LIMIT, devices_of
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.queues import Queue, UserLimits, link, with_users
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import WorkerShape

KINDS = (*BASE_KINDS, devices_of("a100"))
NOTHING, EVERYTHING = (0, 0, 0, 0), (NO_LIMIT,) * 4
GREEDY = WorkerShape(model="a100", devices=1, cpu=6000, memory_bytes=6 * 2**30)


def why(tree, claim):
    """The reason for which a claim waits on a free host."""
    host = a_host("h")._replace(cpu=64_000, memory_bytes=2**40)
    view = PoolView(now_s=0.0, tree=tree, hosts=(host,), claims=(claim,), rules=Rules())
    [wait] = plan(view).waits
    return wait.reason


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ((0, NO_LIMIT, NO_LIMIT, NO_LIMIT), "vision holds 0 of the 0 devices it may"),
        ((NO_LIMIT, 4000, NO_LIMIT, NO_LIMIT), "vision holds 0 of the 4 cores it may"),
        ((NO_LIMIT, NO_LIMIT, 2**32, NO_LIMIT), "vision holds 0 of the 4 GiB of host memory it"),
        ((NO_LIMIT, NO_LIMIT, NO_LIMIT, 0), "vision holds 0 of the 0 a100 devices it may"),
    ],
)
def test_limit_is_named_by_what_it_limits(limit, said):
    """Who has devices left but no cores must not read of devices."""
    tree = grow(KINDS, [Queue(name="vision", guarantee=NOTHING, limit=limit)])
    assert why(tree, replace(a_claim("c"), worker=GREEDY)).startswith(said)


def test_spent_budget_is_called_a_budget():
    """The leaf's limit is only how a pass is told of it."""
    terms = UserLimits(budget_s=36_000, period_s=86_400)
    queue = Queue(name="vision", guarantee=NOTHING, limit=EVERYTHING, user_limits=terms)
    tree = with_users(grow(KINDS, [queue]), [("vision", "ann")])
    spent = replace(tree.queues["vision/ann"], limit=(0, *EVERYTHING[1:]))
    tree = link(KINDS, [queue, spent])
    said = "ann has used up the 10 device-hours of this period."
    assert why(tree, a_claim("c", queue="vision/ann")) == said


@pytest.mark.parametrize(
    ("guarantee", "said"),
    [
        (0, "and vision has none; another priority may start."),
        (1000, "such claims hold 0 of the 1 devices guaranteed to vision."),
    ],
)
def test_firm_claim_is_told_what_it_needs(guarantee, said):
    """Nothing else says that it may wait for ever."""
    queue = Queue(name="vision", guarantee=(guarantee, *NOTHING[1:]), limit=EVERYTHING)
    reason = why(grow(KINDS, [queue]), a_claim("c", workers=2, firm=True))
    assert reason.startswith("A claim of this priority is never taken, so it needs a guarantee")
    assert reason.endswith(said)
