"""What a queue can count on, whatever the others ask for.

Tried on equal devices and claims of one device each, where nothing but fairness decides.
"""

from dataclasses import replace
from fractions import Fraction

from carried_out import at_rest
from hypothesis import assume, given
from hypothesis import strategies as st
from laws.books import by_id, has, held_by_queue, waiting
from laws.pools import LAW, Kind, a_claim, a_host, pools

from jupyter_gpupool.scheduling.dominance import is_fairer, level_shares
from jupyter_gpupool.scheduling.queues import link
from jupyter_gpupool.scheduling.rounds import plan

EQUALS = Kind(
    plain=True,
    gangs=False,
    young=False,
    firm=False,
    moves=False,
    depth=1,
    limits=False,
    usage=False,
    priorities=False,
)
FROM_NOTHING = replace(EQUALS, holding=False)
WHOLE = 1000


def _same_priority(view):
    queues = [replace(queue, priority=0) for queue in view.tree.queues.values()]
    return replace(view, tree=link(view.tree.kinds, queues))


def _changed(view, name, **terms):
    queues = [replace(q, **terms) if q.name == name else q for q in view.tree.queues.values()]
    return replace(view, tree=link(view.tree.kinds, queues))


def _demand(view):
    wanted = dict.fromkeys(view.tree.queues, 0)
    for claim in view.claims:
        wanted[claim.queue] += max(claim.maximum, has(claim)) * WHOLE
    return wanted


def _static(view):
    """What each queue would have if what is not guaranteed were split by weight once for all."""
    queues = view.tree.queues.values()
    capacity = WHOLE * sum(len(host.devices) for host in view.hosts)
    surplus = capacity - sum(queue.guarantee[0] for queue in queues)
    weights = sum(Fraction(queue.weight) for queue in queues) or 1
    return {q.name: q.guarantee[0] + surplus * Fraction(q.weight) / weights for q in queues}


@LAW
@given(view=pools(EQUALS))
def test_sharing_is_no_worse_than_a_static_split(view):
    """Up to part of a device, each queue holds what it wants of what it would own alone."""
    view = _same_priority(view)
    rest, _ = at_rest(view)
    held, wanted = held_by_queue(rest), _demand(rest)
    for name, own in _static(rest).items():
        assert held[name] > min(wanted[name], own) - WHOLE


@LAW
@given(view=pools(EQUALS))
def test_guarantees_are_given_in_full(view):
    """Each queue holds all it wants of its guarantee."""
    rest, _ = at_rest(view)
    held, wanted = held_by_queue(rest), _demand(rest)
    for name, queue in rest.tree.queues.items():
        assert held[name] >= min(wanted[name], queue.guarantee[0])


@LAW
@given(view=pools(EQUALS))
def test_nobody_envies_more_than_one_device(view):
    """Beyond guarantees, who waits holds per weight no less than others but for one device."""
    view = _same_priority(view)
    rest, _ = at_rest(view)
    held, queues = held_by_queue(rest), rest.tree.queues
    for claim in waiting(rest):
        mine = queues[claim.queue]
        for other in queues.values():
            beyond = held[other.name] - max(other.guarantee[0], 0)
            if mine.weight and other.weight and beyond > 0:
                own = max(0, held[mine.name] - mine.guarantee[0])
                assert (beyond - WHOLE) * mine.weight < (own + WHOLE) * other.weight


@LAW
@given(view=pools(FROM_NOTHING), place=st.integers(0, 9))
def test_more_weight_never_costs_more_than_a_device(view, place):
    """With twice the weight a queue holds no less, up to one device."""
    name = list(view.tree.queues)[place % len(view.tree.queues)]
    heavier = _changed(view, name, weight=view.tree.queues[name].weight * 2)
    less, more = (held_by_queue(at_rest(pool)[0])[name] for pool in (view, heavier))
    assert more >= less - WHOLE


@LAW
@given(view=pools(FROM_NOTHING))
def test_more_devices_never_cost_more_than_one(view):
    """With one device more every queue holds no less, up to one, and all together no less."""
    larger = replace(view, hosts=(a_host("h0", len(view.hosts[0].devices) + 1),))
    less, more = (held_by_queue(at_rest(pool)[0]) for pool in (view, larger))
    assert all(more[name] >= less[name] - WHOLE for name in view.tree.queues)
    assert sum(more[name] for name in view.tree.queues) >= sum(less.values())


@LAW
@given(view=pools(FROM_NOTHING), place=st.integers(0, 9), extra=st.integers(1, 4))
def test_asking_for_more_than_is_used_gains_nothing(view, place, extra):
    """With claims that nobody uses a queue runs no more of those that somebody uses."""
    name = list(view.tree.queues)[place % len(view.tree.queues)]
    pretended = [a_claim(f"x{90 + n}", name) for n in range(extra)]
    honest, _ = at_rest(view)
    pretending, _ = at_rest(replace(view, claims=(*view.claims, *pretended)))
    useful = [
        sum(has(claim) for claim in pool.claims if claim.queue == name and claim.id[0] == "c")
        for pool in (honest, pretending)
    ]
    assert useful[1] <= useful[0]


@LAW
@given(view=pools(Kind(plain=True, moves=False, usage=False, priorities=False, limits=False)))
def test_taking_makes_the_tree_fairer(view):
    """The greatest part beyond guarantee, per weight, becomes smaller where two sides meet.

    Design section 5.4, for queues of equal priority whose use does not correct their weights:
    there shares and weights say the same.
    """
    view, seen = _same_priority(view), plan(_same_priority(view))
    assume(len(seen.promises) == 1 and seen.takes)
    claims = by_id(view)
    claimant = claims[seen.promises[0].claim_id]
    before, after = held_by_queue(view), held_by_queue(view)
    for grant in seen.grants:
        _add(view, before, claims[grant.claim_id], len(grant.workers))
        _add(view, after, claims[grant.claim_id], len(grant.workers))
    for take in seen.takes:
        _add(view, after, claims[take.claim_id], -len(take.workers))
    _add(view, after, claimant, len(seen.promises[0].workers))
    capacity = (WHOLE * len(view.hosts[0].devices),)
    for take in seen.takes:
        giver = claims[take.claim_id]
        if giver.queue == claimant.queue:
            continue
        meet = view.tree.common_ancestor(giver.queue, claimant.queue)
        shares = [
            level_shares(view.tree, capacity, {n: (h,) for n, h in held.items()}, meet)
            for held in (after, before)
        ]
        assert is_fairer(*shares)


def _add(view, held, claim, workers):
    for queue in view.tree.path(claim.queue):
        held[queue] += workers * claim.worker.thousandths
