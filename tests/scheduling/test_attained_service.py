"""Least attained service: who is served first, who gives way, and who keeps what they have."""

from dataclasses import replace

import pytest
from service_pool import NOW_S, RULES, a_claim, a_host, a_tree, a_view, served, stopped

from jupyter_gpupool.scheduling.decisions import Constraint, TakeHow
from jupyter_gpupool.scheduling.ledger import Ledger
from jupyter_gpupool.scheduling.queues import with_users
from jupyter_gpupool.scheduling.reservations import Booking, tree_at
from jupyter_gpupool.scheduling.rounds import Steps, plan
from jupyter_gpupool.scheduling.service_books import ServiceBooks

WHOLE_HOST = "h-0 h-1 h-2 h-3"
OLD, OLDER = 500.0, 5_000.0
"""Device-seconds that are past the first level, and past the second."""


def test_lowest_level_is_served_first():
    """Who has held little goes before who has waited long."""
    decided = plan(
        a_view(
            a_claim("waits-long", each=4, since_s=1.0, attained_s=OLD),
            a_claim("new", each=4, since_s=9_000.0),
        )
    )
    assert served(decided) == ["new"]


def test_within_a_level_first_come_first_served():
    """What is attained counts by levels only."""
    decided = plan(
        a_view(
            a_claim("second", each=4, since_s=2.0),
            a_claim("first", each=4, since_s=1.0, attained_s=99.0),
        )
    )
    assert served(decided) == ["first"]


def test_higher_level_hibernates_for_lower():
    """Whoever has attained most gives way, and the claimant is promised the devices."""
    decided = plan(
        a_view(
            a_claim("old", each=2, on=["h-0 h-1"], attained_s=OLD),
            a_claim("older", each=2, on=["h-2 h-3"], attained_s=OLDER),
            a_claim("new", each=2),
        )
    )
    assert stopped(decided) == ["older"]
    assert [w.devices for w in decided.promises[0].workers] == [("h-2", "h-3")]


def test_same_level_keeps_its_place():
    """Claims near each other do not take turns."""
    held = a_claim("held", each=4, on=[WHOLE_HOST], attained_s=99.0)
    decided = plan(a_view(held, a_claim("new", each=4)))
    assert decided.changes_nothing
    assert [w.claim_id for w in decided.waits] == ["new"]


@pytest.mark.parametrize("terms", [{"can_hibernate": False}, {"firm": True}])
def test_what_cannot_stop_keeps_its_place(terms):
    """Nobody is ended for the sake of another's turn."""
    held = a_claim("held", each=4, on=[WHOLE_HOST], attained_s=OLDER, **terms)
    assert plan(a_view(held, a_claim("new", each=4))).changes_nothing


@pytest.mark.parametrize(("for_s", "gives"), [(49.0, []), (50.0, ["held"])])
def test_resumed_claim_keeps_devices_for_a_while(for_s, gives):
    """What it costs to resume is bounded by what is worked in between."""
    held = a_claim("held", each=4, on=[WHOLE_HOST], attained_s=OLD, started_s=NOW_S - for_s)
    assert stopped(plan(a_view(held, a_claim("new", each=4)))) == gives


def test_guarantee_goes_before_lower_levels():
    """A queue gets what it is guaranteed, whatever its claims have attained."""
    decided = plan(
        a_view(
            a_claim("new", queue="text", each=4),
            a_claim("entitled", each=4, attained_s=OLDER),
            tree=a_tree(vision=4),
        )
    )
    assert served(decided) == ["entitled"]


def test_guarantee_is_taken_from_any_level():
    """Whoever holds more than its queue is guaranteed gives, however little it has attained."""
    decided = plan(
        a_view(
            a_claim("new", queue="text", each=4, on=[WHOLE_HOST]),
            a_claim("entitled", attained_s=OLDER),
            tree=a_tree(vision=1),
        )
    )
    assert stopped(decided) == ["new"]
    assert decided.takes[0].reason.endswith("vision, which has less than it is guaranteed.")


def test_guaranteed_devices_stay_from_others_surplus():
    """Lower levels take nothing that another queue is guaranteed."""
    held = a_claim("held", each=2, on=["h-0 h-1"], attained_s=OLDER)
    more = a_claim("more", each=2, on=["h-2 h-3"], attained_s=OLD)
    new = a_claim("new", queue="text", each=2)
    guaranteed = a_view(held, more, new, tree=a_tree(vision=4))
    assert plan(guaranteed).changes_nothing
    assert stopped(plan(replace(guaranteed, tree=a_tree(vision=2)))) == ["held"]


def test_guarantee_of_a_team_is_for_its_users():
    """A user of another team takes nothing of it; one of the same team goes by level."""
    tree = with_users(a_tree(vision=4), [("vision", "ann"), ("vision", "bob"), ("text", "eve")])
    held = a_claim("held", queue="vision/ann", each=4, on=[WHOLE_HOST], attained_s=OLDER)
    for queue, gives in (("text/eve", []), ("vision/bob", ["held"])):
        assert stopped(plan(a_view(held, a_claim("new", queue=queue, each=4), tree=tree))) == gives


def test_within_a_queue_levels_decide():
    """A guarantee is for all claims of a queue: among them the lower level goes first."""
    held = a_claim("held", each=4, on=[WHOLE_HOST], attained_s=OLDER)
    decided = plan(a_view(held, a_claim("new", each=4), tree=a_tree(vision=4)))
    assert stopped(decided) == ["held"]


def test_elastic_claim_shrinks_before_anyone_stops():
    """Surplus workers go first, even of a claim that has attained less."""
    decided = plan(
        a_view(
            a_claim("elastic", workers=1, most=2, on=["h-0", "h-1"], attained_s=OLD),
            a_claim("older", each=2, on=["h-2 h-3"], attained_s=OLDER),
            a_claim("new"),
        )
    )
    assert [(t.claim_id, t.how) for t in decided.takes] == [("elastic", TakeHow.SHRINK)]


def test_nobody_gives_way_for_growth():
    """A claim that has its minimum grows into what is free alone."""
    held = a_claim("held", each=2, on=["h-0 h-1"], attained_s=OLDER)
    grows = a_claim("grows", workers=1, most=4, on=["h-2"])
    decided = plan(a_view(held, grows))
    assert not decided.takes
    assert [len(grant.workers) for grant in decided.grants] == [1]


def test_gang_is_served_whole():
    """As many hosts as it needs are emptied, or none."""
    hosts = [a_host("g"), a_host("h")]
    held = a_claim("held", each=4, on=[WHOLE_HOST], attained_s=OLD)
    free = a_view(held, a_claim("gang", workers=2, each=4), hosts=hosts)
    assert stopped(plan(free)) == ["held"]
    other = a_claim("other", each=1, on=["g-0"])
    assert plan(replace(free, claims=(*free.claims, other))).changes_nothing


def test_who_gives_way_and_fits_elsewhere_moves():
    """What is free but scattered becomes room for a gang."""
    decided = plan(
        a_view(
            a_claim("small", each=1, on=["h-0"], attained_s=OLD),
            a_claim("other", each=2, on=["g-0 g-1"]),
            a_claim("new", each=4),
            hosts=[a_host("g"), a_host("h")],
        )
    )
    assert [move.claim_id for move in decided.moves] == ["small"]
    assert [worker.host_id for worker in decided.moves[0].to] == ["g"]
    assert not decided.takes


def test_worker_that_is_given_and_had_elsewhere_moves():
    """Its claim goes on with the others, and is neither taken from nor given to beside that."""
    decided = plan(
        a_view(
            a_claim("wide", workers=1, most=2, on=["h-0", "h-1"], attained_s=OLD),
            a_claim("other", each=3, on=["g-0 g-1 g-2"]),
            a_claim("new", each=3),
            hosts=[a_host("g"), a_host("h")],
        )
    )
    [move] = decided.moves
    assert (move.claim_id, len(move.workers), [w.host_id for w in move.to]) == ("wide", 1, ["g"])
    assert (decided.takes, decided.grants) == ((), ())


def test_what_others_have_just_given_is_granted_to_nobody():
    """Whoever else has use for it is promised it, and so is all that its claimant gets beside."""
    decided = plan(
        a_view(
            a_claim("old", each=4, on=[WHOLE_HOST], attained_s=OLD),
            a_claim("first", each=1, most=2, since_s=1.0),
            a_claim("next", each=1, since_s=2.0),
        )
    )
    assert stopped(decided) == ["old"]
    assert decided.grants == ()
    promised = {promise.claim_id: len(promise.workers) for promise in decided.promises}
    assert promised == {"first": 2, "next": 1}


def test_fewest_and_smallest_give_way():
    """Of one level, those are chosen who give no more than is needed."""
    decided = plan(
        a_view(
            a_claim("large", each=3, on=["h-0 h-1 h-2"], attained_s=OLD),
            a_claim("small", each=1, on=["h-3"], attained_s=OLD),
            a_claim("new", each=1),
        )
    )
    assert stopped(decided) == ["small"]


def test_at_its_limit_only_its_own_claims_give():
    """What others give would not help a queue that may not hold more."""
    decided = plan(
        a_view(
            a_claim("other", queue="text", each=2, on=["h-0 h-1"], attained_s=OLDER),
            a_claim("own", each=2, on=["h-2 h-3"], attained_s=OLD),
            a_claim("new", each=2),
            tree=a_tree(limit=2),
        )
    )
    assert stopped(decided) == ["own"]


def test_promised_devices_are_granted_once_free():
    """A promise is kept before anybody else is served."""
    promised = replace(a_claim("on", each=4, on=[WHOLE_HOST]), id="promised", held=())
    held = a_claim("x", each=4, on=[WHOLE_HOST]).held
    decided = plan(a_view(replace(promised, promised=held), a_claim("new", each=4)))
    assert served(decided) == ["promised"]


def test_waits_are_told_in_order_of_service():
    """Place and constraint come from the same order as the decision."""
    decided = plan(
        a_view(
            a_claim("held", each=4, on=[WHOLE_HOST]),
            a_claim("older", attained_s=OLD, since_s=1.0),
            a_claim("new", since_s=2.0),
        )
    )
    told = [(w.claim_id, w.place, w.constraint) for w in decided.waits]
    assert told == [("new", 1, Constraint.DEVICES), ("older", 2, Constraint.DEVICES)]


def test_next_moment_is_the_next_level():
    """Two devices reach the first 100 device-seconds in 50 seconds, and give way from then on."""
    held = a_claim("held", each=2, on=["h-0 h-1"], attained_s=20.0)
    books = ServiceBooks(Ledger(a_view(held, rules=replace(RULES, least_stint_s=0.0))))
    assert books.next_s == NOW_S + 40.0


CLASS = Booking(id="b", queue="speech", devices=2, from_s=NOW_S - 10, until_s=NOW_S + 1_000)


def booked(*claims, booking=CLASS, steps=Steps.ALL):
    """A pass beside a booking, in a pool where nobody is guaranteed anything else."""
    view = a_view(*claims)
    tree = tree_at(view.tree, (booking,), NOW_S)
    return plan(replace(view, tree=tree, bookings=(booking,)), steps)


def test_what_is_booked_goes_to_nobody_else():
    """Though it is free, and whoever wants it is told for whom it is kept."""
    decided = booked(a_claim("wants", workers=4))
    assert decided.changes_nothing
    assert "what is free is kept for speech" in decided.waits[0].reason


def test_what_is_booked_goes_to_its_queue_however_much_that_has_had():
    """It is kept for it, and not for who would stand before it."""
    held = a_claim("held", each=2, on=["h-0 h-1"])
    old = a_claim("old", queue="speech", workers=2, attained_s=OLDER)
    assert served(booked(held, a_claim("new"), old)) == ["old"]


def test_booked_queue_has_what_is_kept_and_what_others_give_together():
    """One device is free and kept, and one more is owed."""
    held = a_claim("held", workers=1, most=3, on=["h-0", "h-1", "h-2"], attained_s=OLD)
    decided = booked(held, a_claim("wants", queue="speech", workers=2))
    assert [(take.claim_id, len(take.workers)) for take in decided.takes] == [("held", 1)]
    assert served(decided) == ["wants"]


def test_who_holds_what_is_booked_is_told_before():
    """What is lacking when the window opens, and no more."""
    soon = replace(CLASS, from_s=NOW_S + 600)
    held = a_claim("held", workers=1, most=3, on=["h-0", "h-1", "h-2"], attained_s=OLD)
    notices = booked(held, booking=soon).notices
    assert [(n.claim_id, len(n.workers), n.by_s) for n in notices] == [("held", 1, soon.from_s)]
    assert booked(held, booking=soon, steps=Steps.GRANT).notices == ()


def test_nobody_gives_where_nothing_is_taken_back():
    """A policy may only order those who wait."""
    old = a_claim("old", each=4, on=[WHOLE_HOST], attained_s=OLD)
    view = a_view(old, a_claim("new", each=2))
    assert plan(view).takes
    assert plan(view, Steps.GRANT).changes_nothing


def test_who_has_had_as_little_moves_so_that_a_gang_fits():
    """Nobody has to give way; where moves are allowed, one goes elsewhere."""
    hosts = [a_host("g", 2), a_host("h", 2)]
    held = [a_claim("one", on=["g-0"]), a_claim("two", on=["h-0"])]
    view = a_view(*held, a_claim("pair", each=2), hosts=hosts)
    assert plan(view).changes_nothing
    decided = plan(replace(view, rules=replace(RULES, may_move=True)))
    assert (len(decided.moves), len(decided.takes)) == (1, 0)
    assert served(decided) == ["pair"]
    assert plan(replace(view, rules=replace(RULES, may_move=True)), Steps.GRANT).changes_nothing
