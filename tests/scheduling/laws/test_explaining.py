"""What is said of those who wait is true: counted again on the pool as it then is."""

from collections import defaultdict
from dataclasses import replace

from carried_out import at_rest
from hypothesis import given
from laws.books import (
    by_id,
    free_devices,
    has,
    may_have,
    needs,
    over_guarantee,
    over_limit,
    room,
    waiting,
)
from laws.pools import LAW, Kind, pools

from jupyter_gpupool.scheduling.decisions import Constraint
from jupyter_gpupool.scheduling.rounds import plan


def _emptied(view):
    """The pool if nobody held anything and all of it were in order."""
    hosts = tuple(
        host._replace(
            takes_more=True,
            devices=tuple(d._replace(may_be_leased=True, obstacle=None) for d in host.devices),
        )
        for host in view.hosts
    )
    claims = tuple(replace(claim, held=(), promised=()) for claim in view.claims)
    return replace(view, hosts=hosts, claims=claims)


@LAW
@given(view=pools())
def test_everybody_who_waits_is_told_why_once(view):
    """Each claim that lacks something after a pass has one answer, and nobody else has any."""
    decided = plan(view)
    told = [wait.claim_id for wait in decided.waits]
    assert len(set(told)) == len(told)
    rest, last = at_rest(view)
    assert {wait.claim_id for wait in last.waits} == {claim.id for claim in waiting(rest)}


@LAW
@given(view=pools())
def test_the_constraint_that_is_named_holds(view):
    """Limit, guarantee, devices or gang: it is what keeps the claim waiting."""
    rest, last = at_rest(view)
    claims = by_id(rest)
    for wait in last.waits:
        claim = claims[wait.claim_id]
        lacks = room(rest, claim) < needs(claim)
        match wait.constraint:
            case Constraint.LIMIT:
                assert over_limit(rest, claim, needs(claim))
            case Constraint.GUARANTEE:
                assert over_guarantee(rest, claim, needs(claim))
            case Constraint.DEVICES:
                assert lacks
                assert may_have(rest, claim, needs(claim))
            case Constraint.GANG:
                assert lacks
                assert free_devices(rest) >= needs(claim) * claim.worker.devices
            case Constraint.NEVER:
                assert room(_emptied(rest), claim) < claim.minimum
            case _:
                raise AssertionError(wait.constraint)


@LAW
@given(view=pools())
def test_what_can_never_start_is_told_so(view):
    """A claim whose minimum the empty pool could not serve does not wait in false hope."""
    decided = plan(view)
    never = {wait.claim_id for wait in decided.waits if wait.constraint is Constraint.NEVER}
    for claim in view.claims:
        if not has(claim) and room(_emptied(view), claim) < claim.minimum:
            assert claim.id in never


@LAW
@given(view=pools())
def test_places_in_line_count_up(view):
    """Among those who wait for the same, places are all different, from 1 on, without a gap."""
    claims, lines = by_id(view), defaultdict(list)
    _, last = at_rest(view)
    for wait in last.waits:
        if wait.constraint is not Constraint.NEVER:
            lines[claims[wait.claim_id].worker].append(wait.place)
    for places in lines.values():
        assert places == sorted(set(places))


@LAW
@given(view=pools(Kind(plain=True)))
def test_places_on_equal_devices_are_one_line(view):
    """Where all want the same, the places are 1, 2, 3 and so on."""
    _, last = at_rest(view)
    places = [wait.place for wait in last.waits if wait.constraint is not Constraint.NEVER]
    assert places == list(range(1, len(places) + 1))
