"""Left alone, a pool comes to rest, and nobody who got something loses it on the way."""

from carried_out import at_rest, begun, freed, passes
from hypothesis import assume, given
from laws.books import by_id, has, may_have, needs, room, waiting
from laws.pools import LAW, Kind, pools

from jupyter_gpupool.scheduling.decisions import TakeHow
from jupyter_gpupool.scheduling.rounds import plan

FEW = 10


@LAW
@given(view=pools())
def test_a_pool_comes_to_rest_soon(view):
    """A handful of passes, and then nothing changes any more, at the same moment or any later."""
    *seen, (rest, _) = passes(view)
    assert len(seen) <= FEW
    assert plan(rest).changes_nothing


@LAW
@given(view=pools(Kind(plain=True, gangs=False, priorities=False)))
def test_nobody_starts_and_then_stops(view):
    """What a claim starts with is not taken again while nothing else has changed."""
    started = set()
    for before, decided in passes(view):
        stopped = {take.claim_id for take in decided.takes if take.how is not TakeHow.SHRINK}
        assert not started & stopped
        waited = {claim.id for claim in before.claims if not claim.held}
        started |= waited & {part.claim_id for part in (*decided.grants, *decided.promises)}


@LAW
@given(view=pools())
def test_nobody_takes_back_what_was_taken_from_it(view):
    """No A to B to A, also where devices differ and what fits is lent until it is wanted."""
    gave = set()
    for _, decided in passes(view):
        assert not gave & {(take.claimant, take.claim_id) for take in decided.takes}
        gave |= {(take.claim_id, take.claimant) for take in decided.takes}


@LAW
@given(view=pools())
def test_nothing_lies_idle_that_somebody_waits_for(view):
    """At rest no waiting claim fits on what is free within its limits."""
    rest, _ = at_rest(view)
    for claim in waiting(rest):
        assert room(rest, claim) < needs(claim) or not may_have(rest, claim, needs(claim))


@LAW
@given(view=pools())
def test_the_first_pass_leaves_nothing_idle(view):
    """Already one pass serves all whom what is free can serve, if it takes nothing from anybody."""
    decided = plan(view)
    assume(not decided.takes and not decided.moves)
    after = begun(view, decided)
    for claim in waiting(after):
        assert room(after, claim) < needs(claim) or not may_have(after, claim, needs(claim))


@LAW
@given(view=pools())
def test_promises_are_kept(view):
    """Whoever is promised devices that others give back holds just those once they are free."""
    decided = plan(view)
    after = begun(view, decided)
    then = freed(after)
    granted = {(grant.claim_id, w) for grant in plan(then).grants for w in grant.workers}
    assert granted >= {(claim.id, w) for claim in after.claims for w in claim.promised}


@LAW
@given(view=pools())
def test_what_is_being_freed_moves_nobody_else(view):
    """While promised devices are being freed, planning again asks nobody for them once more."""
    decided = plan(view)
    again = plan(begun(view, decided))
    got = {grant.claim_id for grant in again.grants}
    promised = {promise.claim_id for promise in decided.promises} - got
    assert not promised & {take.claimant for take in again.takes}
    assert not promised & {take.claim_id for take in again.takes}


@LAW
@given(view=pools())
def test_carried_out_slowly_comes_to_the_same_rest(view):
    """Freed at once or step by step, every step leaves each claim with all or nothing."""
    for _ in range(40):
        decided = plan(view)
        if decided.changes_nothing:
            return
        had = by_id(view)
        view = freed(begun(view, decided))
        for claim in view.claims:
            assert has(claim) in (0, has(had[claim.id])) or has(claim) >= claim.minimum
    raise AssertionError("the pool does not come to rest")
