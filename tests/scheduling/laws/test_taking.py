"""What may be taken, from whom, and in which order."""

from dataclasses import replace

from applied import applied
from carried_out import at_rest, passes
from hypothesis import assume, given
from laws.books import by_id, free_devices, has, held_by_queue, may_have, needs, waiting
from laws.pools import LAW, NOW_S, Kind, pools

from jupyter_gpupool.scheduling.decisions import TakeHow
from jupyter_gpupool.scheduling.protection import protected_s
from jupyter_gpupool.scheduling.rounds import plan

ONE_EACH = Kind(plain=True, gangs=False)


def _is_young(view, claim, claimant):
    least_s = protected_s(view.tree, claimant=claimant.queue, victim=claim.queue)
    return claim.started_s is not None and NOW_S - claim.started_s < least_s


def _sides(view, one, other):
    """The queues below the common ancestor on whose sides two claims stand."""
    meet = view.tree.common_ancestor(one.queue, other.queue)
    return view.tree.below(meet, one.queue), view.tree.below(meet, other.queue)


@LAW
@given(view=pools())
def test_young_claims_are_left_alone(view):
    """Within its minimum runtime a claim is neither taken nor moved."""
    claims = by_id(view)
    decided = plan(view)
    for part in (*decided.takes, *decided.moves):
        assert not _is_young(view, claims[part.claim_id], claims[part.claimant])


@LAW
@given(view=pools())
def test_firm_claims_are_never_taken(view):
    """A protected claim keeps its devices, whoever asks, in every pass."""
    for before, decided in passes(view):
        firm = {claim.id for claim in before.claims if claim.firm}
        assert not firm & {part.claim_id for part in (*decided.takes, *decided.moves)}


@LAW
@given(view=pools())
def test_a_claim_stops_whole_or_keeps_its_minimum(view):
    """Shrinking leaves what a claim must not run without; anything else takes all it has."""
    claims = by_id(view)
    for take in plan(view).takes:
        left = has(claims[take.claim_id]) - len(take.workers)
        if take.how is TakeHow.SHRINK:
            assert left >= claims[take.claim_id].minimum
        else:
            assert left == 0
            assert (take.how is TakeHow.HIBERNATE) == claims[take.claim_id].can_hibernate


@LAW
@given(view=pools())
def test_who_gives_to_others_had_more_than_its_own(view):
    """Between queues, only a side beyond its guarantee gives; within one, only to higher rank."""
    decided, claims = plan(view), by_id(view)
    held = held_by_queue(applied(view, replace(decided, takes=(), promises=(), moves=())))
    for take in decided.takes:
        giver, claimant = claims[take.claim_id], claims[take.claimant]
        if giver.queue == claimant.queue:
            assert giver.priority < claimant.priority
        else:
            theirs, _ = _sides(view, giver, claimant)
            assert held[theirs] > view.tree.queues[theirs].guarantee[0]


@LAW
@given(view=pools(Kind(plain=True)))
def test_surplus_goes_before_anybody_is_stopped(view):
    """Nobody is stopped while another of its queue, no busier nor higher, had surplus to give."""
    decided, claims = plan(view), by_id(view)
    gave = {take.claim_id: len(take.workers) for take in decided.takes}
    for take in decided.takes:
        stopped, claimant = claims[take.claim_id], claims[take.claimant]
        if take.how is TakeHow.SHRINK:
            continue
        for other in view.claims:
            spared = min(has(other) - gave.get(other.id, 0) - other.minimum, has(other))
            is_equal = (other.queue, other.idle, other.priority) == (
                stopped.queue,
                stopped.idle,
                stopped.priority,
            )
            if is_equal and not other.firm and other is not claimant:
                assert spared < len(take.workers) or _is_young(view, other, claimant)


@LAW
@given(view=pools(ONE_EACH))
def test_guarantees_are_met_when_they_can_be(view):
    """Inside its guarantee a claim waits only for what is firm, young or within guarantee."""
    rest, _ = at_rest(view)
    held = held_by_queue(rest)
    for claim in waiting(rest):
        if _is_guaranteed(rest, held, claim) and may_have(rest, claim, needs(claim)):
            assert free_devices(rest) + _owed(rest, held, claim) < needs(claim)


def _is_guaranteed(view, held, claim):
    more = needs(claim) * claim.worker.thousandths
    path = [view.tree.queues[name] for name in view.tree.path(claim.queue)]
    return all(held[queue.name] + more <= queue.guarantee[0] for queue in path)


def _owed(view, held, claim):
    """Devices that other sides of the tree hold beyond their guarantee and that may be taken."""
    could_give = dict.fromkeys(view.tree.queues, 0)
    for other in view.claims:
        if other.firm or other.queue == claim.queue or _is_young(view, other, claim):
            continue
        theirs, _ = _sides(view, other, claim)
        could_give[theirs] += has(other)
    beyond = {name: held[name] - queue.guarantee[0] for name, queue in view.tree.queues.items()}
    # A queue owes as long as it is over: what is asked may take it below by part of a device.
    return sum(max(0, min(count, beyond[name] // 1000)) for name, count in could_give.items())


@LAW
@given(view=pools(ONE_EACH))
def test_only_idle_claims_go_while_there_are_any(view):
    """Within a queue nobody busy gives while somebody idle could have given instead."""
    decided, claims = plan(view), by_id(view)
    takes = {take.claim_id: take for take in decided.takes}
    assume(takes)
    for take in takes.values():
        if take.busy:
            for other in view.claims:
                if other.queue == claims[take.claim_id].queue and other.idle and other.held:
                    left = has(other) - len(takes[other.id].workers) if other.id in takes else 1
                    claimant = claims[take.claimant]
                    is_out = other.firm or _is_young(view, other, claimant) or other is claimant
                    assert is_out or not left or _ranks(other, claimant, claims[take.claim_id])


def _ranks(other, claimant, giver):
    """Whether a claim of a claimant's own queue is of no lower rank than it."""
    same = other.queue == giver.queue == claimant.queue
    return same and other.priority >= claimant.priority
