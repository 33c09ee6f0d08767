"""What a whole pass decides beside a booking: before its window, in it, and after."""

from dataclasses import replace

import pytest
from gap_world import a_claim, a_host, a_queue, a_view, on

from jupyter_gpupool.scheduling.estimates import estimate_claim, estimates
from jupyter_gpupool.scheduling.reservations import Booking, tree_at
from jupyter_gpupool.scheduling.rounds import Steps, plan

CLASS = Booking(id="b", queue="class", devices=2, from_s=1000.0, until_s=2000.0)
BATCH = a_claim("batch", 4, minimum=1, queue="q", since_s=0.0)


def decided(*claims, now_s: float, bookings=(CLASS,), devices: int = 4, steps=Steps.ALL):
    """A pass over one host and two queues without guarantees of their own."""
    view = a_view(
        [a_host("h", devices)],
        claims,
        now_s=now_s,
        queues=(a_queue("class", 0), a_queue("q", 0)),
    )
    tree = tree_at(view.tree, bookings, now_s)
    return plan(replace(view, tree=tree, bookings=bookings), steps)


def granted(made) -> dict[str, int]:
    """How many workers each claim is granted."""
    return {grant.claim_id: len(grant.workers) for grant in made.grants}


@pytest.mark.parametrize(
    ("now_s", "workers"), [(99.0, 4), (100.0, 2), (999.0, 2), (1000.0, 2), (2000.0, 4)]
)
def test_booked_devices_stay_free_from_a_quarter_of_an_hour_before(now_s, workers):
    """Until the window closes, though nobody of the class has come yet."""
    assert granted(decided(BATCH, now_s=now_s)) == {"batch": workers}


def test_class_finds_its_devices_free_when_it_comes():
    """At once, and others have what it leaves."""
    student = a_claim("student", 2, queue="class", since_s=1500.0)
    assert granted(decided(BATCH, student, now_s=1500.0)) == {"batch": 2, "student": 2}


def test_claim_that_a_booking_keeps_out_is_told_which():
    """In its own words, and no more once the class holds what it has booked."""
    named, four = replace(CLASS, words='class ("exam") until noon'), replace(BATCH, minimum=4)
    (wait,) = decided(four, now_s=1500.0, bookings=(named,)).waits
    told = 'Waiting for 4 devices; what is free is kept for class ("exam") until noon.'
    assert wait.reason == told
    (wait,) = decided(four, now_s=1500.0).waits
    assert wait.reason == "Waiting for 4 devices; what is free is kept for class."
    student = a_claim("student", 2, queue="class", held=on("h-0", "h-1"), started_s=1100.0)
    (wait,) = decided(four, student, now_s=1500.0, bookings=(named,)).waits
    assert "kept for" not in wait.reason


def test_booking_within_the_guarantee_empties_its_devices_in_time():
    """What the queue is guaranteed is lent to others until then."""
    runs = a_claim("runs", 4, minimum=1, held=on("h-0", "h-1", "h-2", "h-3"), started_s=0.0)
    view = a_view(
        [a_host("h", 4)], [runs], now_s=200.0, queues=(a_queue("class", 2000), a_queue("q", 0))
    )
    made = plan(replace(view, bookings=(CLASS,)), Steps.GRANT | Steps.RECLAIM)
    assert [len(notice.workers) for notice in made.notices] == [2]


def test_what_the_class_holds_is_kept_no_second_time():
    """Of four devices it holds its two: two are left for others."""
    student = a_claim("student", 2, queue="class", held=on("h-0", "h-1"), started_s=1100.0)
    assert granted(decided(BATCH, student, now_s=1500.0)) == {"batch": 2}


def test_holder_of_booked_devices_gets_notice_and_again():
    """Each pass says all of it; a pool whose policy takes nothing back gives none."""
    runs = replace(BATCH, held=on("h-0", "h-1", "h-2", "h-3"), started_s=0.0)
    first, later = decided(runs, now_s=200.0), decided(runs, now_s=900.0)
    assert [(n.claim_id, len(n.workers), n.by_s, n.booking) for n in first.notices] == [
        ("batch", 2, 1000.0, "b")
    ]
    assert (later.notices, first.takes) == (first.notices, ())
    assert decided(runs, now_s=200.0, steps=Steps.GRANT).notices == ()


def test_class_after_class_empties_devices_once():
    """The second of the same queue gets what the first one leaves."""
    after = replace(CLASS, id="c", from_s=2000.0, until_s=3000.0)
    student = a_claim("student", 2, queue="class", held=on("h-0", "h-1"), started_s=1100.0)
    runs = a_claim("runs", 2, held=on("h-2", "h-3"), started_s=0.0)
    assert decided(student, runs, now_s=1500.0, bookings=(CLASS, after)).notices == ()
    assert decided(runs, now_s=1500.0, bookings=(CLASS, after)).notices == ()


def test_classes_side_by_side_empty_devices_for_both():
    """Two bookings of one queue at one time are four devices, not two."""
    beside = replace(CLASS, id="c")
    runs = replace(BATCH, held=on("h-0", "h-1", "h-2", "h-3"), started_s=0.0)
    made = decided(runs, now_s=500.0, bookings=(CLASS, beside))
    assert sum(len(notice.workers) for notice in made.notices) == 4


def foreseen(*claims, now_s: float, devices: int = 4):
    """When claims are thought to start beside the booking, and what would start now."""
    view = a_view(
        [a_host("h", devices)], claims, now_s=now_s, queues=(a_queue("class", 0), a_queue("q", 0))
    )
    booked = replace(view, tree=tree_at(view.tree, (CLASS,), now_s), bookings=(CLASS,))
    return booked, estimates(booked)


def test_start_is_not_foreseen_on_what_is_booked():
    """Two of four devices are kept: three come free together when the window closes."""
    runs = a_claim("runs", 2, held=on("h-0", "h-1"), started_s=0.0, expected_s=1800.0)
    wide = a_claim("wide", 3, queue="q", since_s=1400.0)
    _, found = foreseen(runs, wide, now_s=1500.0)
    assert found["wide"].start_p50_s == 2000.0


def test_nothing_booked_is_offered_instead():
    """What would start now does so beside the booking alone."""
    runs = a_claim("runs", held=on("h-0"), started_s=0.0, expected_s=1800.0)
    view, _ = foreseen(runs, now_s=1500.0)
    offered = estimate_claim(view, a_claim("wide", 3, queue="q", since_s=1500.0)).alternatives
    assert [each.workers for each in offered] == [1]


def test_limit_that_ends_in_time_serves_one_booking_only():
    """What ends before both windows is counted for the first alone."""
    beside = replace(CLASS, id="c")
    ends = a_claim("ends", 2, held=on("h-0", "h-1"), started_s=0.0, time_limit_s=900.0)
    runs = a_claim("runs", 2, held=on("h-2", "h-3"), started_s=0.0)
    made = decided(ends, runs, now_s=500.0, bookings=(CLASS, beside))
    assert [notice.claim_id for notice in made.notices] == ["runs"]
