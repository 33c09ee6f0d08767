"""Virtual time: who starts and ends when, and what hibernating costs, to the second."""

from dataclasses import replace

import pytest

from jupyter_gpupool.pool.rules import Rules
from jupyter_gpupool.simulation.made_anew import MadeAnew
from jupyter_gpupool.simulation.simulate import replay


def courses(outcome):
    """Of each claim, in the order of their ends: name, start, end, hibernations."""
    return [(c.claim_id, c.started_s, c.ended_s, c.hibernations) for c in outcome.courses]


def test_claims_follow_each_other(an_arrival, a_scheduler):
    """A claim that finds no place starts as soon as the one before it has ended."""
    arrivals = [an_arrival("a", 10, 50), an_arrival("b", 20, 30)]
    outcome = replay(arrivals, a_scheduler(), hibernate_cost_s=60)
    assert courses(outcome) == [("a", 10, 60, 0), ("b", 60, 90, 0)]


def test_end_frees_devices_for_an_arrival_at_once(an_arrival, a_scheduler):
    """Of what happens at one time, ends come first, and one pass is taken for all."""
    arrivals = [an_arrival("b", 60, 5), an_arrival("a", 0, 60)]
    outcome = replay(arrivals, a_scheduler(), hibernate_cost_s=60)
    assert courses(outcome) == [("a", 0, 60, 0), ("b", 60, 65, 0)]
    assert outcome.passes == 3


def test_hibernated_claim_pays_to_resume(an_arrival, a_scheduler):
    """At 100 device-seconds `long` gives way; 60 s of resuming come on top of its 300 s."""
    arrivals = [an_arrival("long", 0, 300), an_arrival("short", 40, 30)]
    outcome = replay(arrivals, a_scheduler(), hibernate_cost_s=60)
    assert courses(outcome) == [("short", 100, 130, 0), ("long", 0, 390, 1)]


def test_resuming_is_paid_for_anew_each_time(an_arrival, a_scheduler):
    """Taken again while it still resumes, a claim has worked no second more."""
    arrivals = [
        an_arrival("long", 0, 300),
        an_arrival("one", 40, 30),
        an_arrival("two", 150, 30),
    ]
    outcome = replay(arrivals, a_scheduler(), hibernate_cost_s=60)
    assert courses(outcome)[-1] == ("long", 0, 180 + 60 + 200, 2)


def test_wait_is_all_that_is_not_work(an_arrival, a_scheduler):
    """Waiting, hibernated or resuming: a user sees no difference."""
    arrivals = [an_arrival("long", 0, 300), an_arrival("short", 40, 30)]
    outcome = replay(arrivals, a_scheduler(), hibernate_cost_s=60)
    assert [course.wait_s for course in outcome.courses] == [60, 90]


def test_what_never_fits_is_told(an_arrival, a_scheduler):
    """The simulation ends though somebody still waits."""
    arrivals = [an_arrival("large", 0, 10, each=2), an_arrival("small", 0, 10)]
    outcome = replay(arrivals, a_scheduler(), hibernate_cost_s=60)
    assert outcome.unfinished == ("large",)


def test_fair_share_runs_on_the_same_time(an_arrival, a_scheduler):
    """Any rules can be simulated: here a guarantee takes its devices back."""
    arrivals = [an_arrival("borrows", 0, 100), an_arrival("owns", 10, 20, queue="vision")]
    scheduler = a_scheduler(MadeAnew, rules=Rules(), vision=1)
    outcome = replay(arrivals, scheduler, hibernate_cost_s=60)
    assert courses(outcome) == [("owns", 10, 30, 0), ("borrows", 0, 180, 1)]


def test_released_claim_is_lost(an_arrival, a_scheduler):
    """What cannot hibernate ends when its devices are taken, and is counted as unfinished."""
    arrivals = [
        an_arrival("borrows", 0, 100, can_hibernate=False),
        an_arrival("owns", 10, 20, queue="vision"),
    ]
    scheduler = a_scheduler(MadeAnew, rules=Rules(), vision=1)
    assert replay(arrivals, scheduler, hibernate_cost_s=60).unfinished == ("borrows",)


def test_kept_books_refuse_other_orders(a_scheduler):
    """Fair share depends on usage that these books do not keep."""
    with pytest.raises(ValueError, match="fair_share"):
        a_scheduler(rules=replace(Rules()))
