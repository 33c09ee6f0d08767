"""Booked windows: what is refused, what a window changes, and how devices are emptied in time."""

from dataclasses import replace

import pytest
from gap_world import a_claim, a_host, a_queue, a_view, books, on
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.scheduling.clearing import clear_for
from jupyter_gpupool.scheduling.decisions import TakeHow
from jupyter_gpupool.scheduling.kept import Kept
from jupyter_gpupool.scheduling.queues import link
from jupyter_gpupool.scheduling.reservations import Booking, book, tree_at

TREE = link(("devices",), [a_queue("class", 2000), a_queue("other", 4000)])
CAPACITY = (10_000,)


def a_booking(name: str, devices: int, from_s=1000.0, until_s=2000.0, queue="class") -> Booking:
    return Booking(id=name, queue=queue, devices=devices, from_s=from_s, until_s=until_s)


def test_bookings_and_guarantees_fill_the_pool_at_most():
    """Of ten devices six are guaranteed, two of them to the class: it can have six in all."""
    booked = book(TREE, CAPACITY, (), a_booking("a", 6), 0.0)
    assert booked == (a_booking("a", 6),)
    with pytest.raises(BadRequest) as refused:
        book(TREE, CAPACITY, booked, a_booking("b", 1, from_s=1999.0), 0.0)
    assert str(refused.value) == (
        "1 device cannot be reserved: of 10 in the pool guarantees take 6 and other"
        " reservations 4. At most 0 can be reserved in that window."
    )


def test_own_guarantee_is_booked_once():
    """However many bookings of a queue share a moment, and even if nothing else is left."""
    full = (6000,)
    booked = book(TREE, full, (), a_booking("a", 1), 0.0)
    booked = book(TREE, full, booked, a_booking("b", 1), 0.0)
    with pytest.raises(BadRequest, match="At most 0 can be reserved"):
        book(TREE, full, booked, a_booking("c", 1), 0.0)
    assert tree_at(TREE, booked, 1500.0) is TREE
    with pytest.raises(BadRequest, match="At most 4 can be reserved"):
        book(TREE, full, booked, a_booking("d", 5, queue="other"), 0.0)


def test_windows_that_only_touch_do_not_add_up():
    """One closes when the other opens; what is over counts no more."""
    booked = book(TREE, CAPACITY, (), a_booking("a", 6), 0.0)
    booked = book(TREE, CAPACITY, booked, a_booking("b", 4, 2000.0, 3000.0), 0.0)
    assert [b.id for b in book(TREE, CAPACITY, booked, a_booking("c", 4, 2500.0, 9e3), 3000.0)] == [
        "c"
    ]


@pytest.mark.parametrize(
    ("booking", "sentence"),
    [
        (a_booking("a", 1, queue="no"), 'There is no queue "no".'),
        (a_booking("a", 0), "0 devices cannot be reserved."),
        (a_booking("a", -3), "-3 devices cannot be reserved."),
        (a_booking("a", 1, 5.0, 5.0), "The reservation ends before it begins."),
        (a_booking("a", 1, 5.0, 10.0), "The reservation is over already."),
    ],
)
def test_nonsense_is_refused_in_one_sentence(booking, sentence):
    """Whoever books reads what is wrong."""
    with pytest.raises(BadRequest, match=sentence):
        book(TREE, CAPACITY, (), booking, 10.0)


BOOKINGS = st.builds(
    lambda at, devices, from_s, length: a_booking(f"b{at}", devices, from_s, from_s + length),
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(0, 20).map(float),
    st.integers(1, 10).map(float),
)


@given(st.lists(BOOKINGS, max_size=12, unique_by=lambda b: b.id))
def test_no_moment_is_overbooked(bookings):
    """Whatever was let in, guarantees stay within the pool all the time."""
    booked: tuple[Booking, ...] = ()
    for booking in bookings:
        try:
            booked = book(TREE, CAPACITY, booked, booking, 0.0)
        except BadRequest:
            continue
    for moment in range(40):
        tree = tree_at(TREE, booked, moment / 1.0)
        assert sum(tree.queues[name].guarantee[0] for name in ("class", "other")) <= CAPACITY[0]


def test_window_raises_guarantee_of_queue_and_those_above():
    """By what is booked beyond its own, from when it opens until it closes; limits as well."""
    team = replace(a_queue("class", 2000), parent="dept", limit=(3000,))
    tree = link(("devices",), [a_queue("dept", 3000), team])
    booked = (a_booking("a", 6),)
    during = tree_at(tree, booked, 1000.0)
    assert [during.queues[name].guarantee for name in ("dept", "class")] == [(7000,), (6000,)]
    assert during.queues["class"].limit == (7000,)
    assert tree_at(tree, booked, 999.0) is tree
    assert tree_at(tree, booked, 2000.0) is tree


def notices(*claims, devices=2, now_s=200.0, guarantee=0):
    """Of four devices, for a class that begins at 1000 s; the other queue is guaranteed so many."""
    queues = (a_queue("class", 0), a_queue("q", guarantee))
    ledger, waiting = books(a_view([a_host("h", 4)], claims, now_s=now_s, queues=queues))
    kept = Kept(ledger)
    return clear_for(ledger, (a_booking("class-1", devices),), kept), kept, waiting


def test_free_devices_are_only_kept():
    """Nobody has to go, and only who ends before may start there."""
    long, short = (
        a_claim("long", 2, since_s=200.0),
        a_claim("short", since_s=200.0, time_limit_s=800.0),
    )
    runs = a_claim("runs", 2, held=on("h-0", "h-1"), started_s=0.0)
    made, kept, waiting = notices(runs, long, short)
    placed = {m.view.id: bool(kept.place(m, m.needs, is_too_big=False)) for m in waiting}
    assert made == ()
    assert placed == {"long": False, "short": True}


def test_queue_that_booked_may_start_early():
    """Students who come too soon take what is kept for them."""
    early = a_claim("early", 2, queue="class", since_s=200.0)
    _, kept, (member,) = notices(early, devices=4)
    assert kept.place(member, 2, is_too_big=False)


def test_claim_with_limit_is_let_end():
    """It will be gone when the window opens."""
    ends = a_claim(
        "ends", 4, held=on("h-0", "h-1", "h-2", "h-3"), started_s=0.0, time_limit_s=999.0
    )
    assert notices(ends)[0] == ()


def test_elastic_claim_shrinks_before_anyone_hibernates():
    """Two of its three workers are surplus, and the other claim goes on."""
    elastic = a_claim("elastic", 3, minimum=1, held=on("h-0", "h-1", "h-2"), started_s=0.0)
    fixed = a_claim("fixed", held=on("h-3"), started_s=100.0)
    (notice,) = notices(elastic, fixed)[0]
    assert (notice.claim_id, notice.how, notice.by_s) == ("elastic", TakeHow.SHRINK, 1000.0)
    assert notice.workers == on("h-2", "h-1")


def test_guarantee_of_others_is_not_touched():
    """Of two claims only the younger one is beyond the guarantee of three."""
    old = a_claim("old", 3, held=on("h-0", "h-1", "h-2"), started_s=0.0)
    young = a_claim("young", held=on("h-3"), started_s=100.0)
    (notice,) = notices(old, young, devices=1, guarantee=3000)[0]
    assert (notice.claim_id, notice.how) == ("young", TakeHow.HIBERNATE)


def test_nobody_is_told_long_before():
    """A quarter of an hour is the longest notice."""
    runs = a_claim("runs", 4, held=on("h-0", "h-1", "h-2", "h-3"), started_s=0.0)
    assert notices(runs, now_s=99.0)[0] == ()
    assert notices(runs, now_s=100.0)[0]
