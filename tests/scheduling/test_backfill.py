"""Who is blocked too long holds a reservation; nobody who runs in its gap delays it."""

from gap_world import World, a_claim, a_host, a_queue, a_view, books, on
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpupool.scheduling.backfill import keep_for_blocked
from jupyter_gpupool.scheduling.decisions import Constraint
from jupyter_gpupool.scheduling.overrunning import end_overrun_for
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import WorkerShape
from jupyter_gpupool.scheduling.standing import Standing, standing_of

LONGEST_S = 3000.0


@st.composite
def worlds(draw, *, limited: bool):
    """A pool of three hosts and a dozen claims with limits, of which some also say less."""
    hosts = tuple(a_host(f"h{n}", draw(st.integers(1, 4))) for n in range(3))
    devices = sum(len(host.devices) for host in hosts)
    takes_s, claims = {}, {}
    for at in range(draw(st.integers(1, 14))):
        name = f"c{at:02}"
        takes_s[name] = draw(st.integers(1, 30)) * 100.0
        limit_s = max(takes_s[name], draw(st.integers(1, 30)) * 100.0)
        expected_s = None if limited else draw(st.sampled_from([None, 100.0, 900.0]))
        claims[name] = a_claim(
            name,
            draw(st.integers(1, devices)),
            since_s=draw(st.integers(0, 20)) * 100.0,
            time_limit_s=limit_s,
            expected_s=expected_s,
        )
    return World(hosts, takes_s, claims)


@settings(max_examples=60, deadline=None)
@given(worlds(limited=True))
def test_backfill_never_delays_a_reservation(world):
    """Whoever was first among the blocked has started by the moment it was told then."""
    world.run()
    for name, promised_s in world.promised.items():
        assert world.started[name] <= promised_s


@settings(max_examples=60, deadline=None)
@given(worlds(limited=False))
def test_loans_delay_no_reservation_either(world):
    """Who was let in on what was only thought goes in time."""
    world.run()
    for name, promised_s in world.promised.items():
        assert world.started[name] <= promised_s


@settings(max_examples=60, deadline=None)
@given(worlds(limited=True))
def test_wait_is_bounded(world):
    """Once all older ones run, a claim waits T and the longest protected remainder at most."""
    claims = dict(world.claims)
    world.run()
    for name, claim in claims.items():
        older = [
            world.started[other.id]
            for other in claims.values()
            if (other.since_s, other.id) < (claim.since_s, name)
        ]
        first_s = max([claim.since_s + world.blocked_s, *older])
        assert world.started[name] <= first_s + LONGEST_S


def stream(blocked_s: float) -> World:
    """Small claims that keep coming, and one gang that needs the whole host."""
    claims = {
        f"s{n:02}": a_claim(f"s{n:02}", since_s=n * 500.0, time_limit_s=1000.0) for n in range(20)
    }
    claims["gang"] = a_claim("gang", 2, since_s=600.0, time_limit_s=1000.0)
    takes_s = dict.fromkeys(claims, 1000.0)
    return World((a_host("h", 2),), takes_s, claims, blocked_s=blocked_s)


def test_stream_of_small_claims_starves_no_gang():
    """Without reservations it would wait for the end of the stream."""
    assert stream(float("inf")).run().started["gang"] == 10_500.0
    assert stream(600.0).run().started["gang"] <= 600.0 + 600.0 + 1000.0


def blocked_gang(*others, queues=("q",), **terms):
    """A gang of two on one host, of which one device is free and one is held for 100 s more."""
    runs = a_claim("runs", held=on("h-0"), started_s=0.0, time_limit_s=1100.0, queue="q")
    gang = a_claim("gang", 2, since_s=0.0, **terms)
    ledger, waiting = books(
        a_view([a_host("h", 2)], [runs, gang, *others], now_s=1000.0, queues=queues)
    )
    return ledger, {m.view.id: m for m in waiting}, keep_for_blocked(ledger, waiting)


def placed(kept, member) -> bool:
    return bool(kept.place(member, member.needs, is_too_big=False))


def test_short_limit_runs_in_the_gap():
    """A hundred seconds fit before the gang starts, a second more does not."""
    short = a_claim("short", time_limit_s=100.0, since_s=990.0)
    long = a_claim("long", time_limit_s=101.0, since_s=990.0)
    _, members, kept = blocked_gang(short, long)
    assert [r.gap.start_s for r in kept.reservations] == [1100.0]
    assert not placed(kept, members["long"])
    assert kept.constraint(members["long"], 1) is Constraint.RESERVED
    assert placed(kept, members["short"])
    assert not kept.lent


def test_expected_time_is_only_a_loan():
    """Who is thought to be gone by then may run, and is told until when."""
    thought = a_claim("thought", expected_s=100.0, since_s=990.0)
    _, members, kept = blocked_gang(thought)
    assert placed(kept, members["thought"])
    assert kept.lent == {"thought": 1100.0}


def test_who_cannot_hibernate_is_lent_nothing():
    """There would be no way to take it back without losing what it did."""
    thought = a_claim("thought", expected_s=100.0, since_s=990.0, can_hibernate=False)
    _, members, kept = blocked_gang(thought)
    assert not placed(kept, members["thought"])


def test_overrunner_goes_when_the_gang_needs_it():
    """Past its loan, and not before, and only for whoever is blocked."""
    for lent_until_s, goes in ((1000.0, True), (1001.0, False)):
        late = a_claim(
            "late", held=on("h-0", "h-1"), started_s=1.0, workers=2, lent_until_s=lent_until_s
        )
        gang = a_claim("gang", 2, since_s=0.0)
        fresh = a_claim("fresh", 2, since_s=900.0)
        ledger, waiting = books(a_view([a_host("h", 2)], [late, gang, fresh], now_s=1000.0))
        members = {member.view.id: member for member in waiting}
        kept = keep_for_blocked(ledger, waiting)
        assert (end_overrun_for(kept, members["gang"]) is not None) is goes
        assert end_overrun_for(kept, members["fresh"]) is None


def test_overrunner_is_told_that_it_overran():
    """And nothing of shares, which it may well have kept to."""
    late = a_claim("late", held=on("h-0", "h-1"), started_s=1.0, workers=2, lent_until_s=1000.0)
    gang = a_claim("gang", 2, since_s=0.0)
    taken = plan(a_view([a_host("h", 2)], [late, gang], now_s=1000.0)).takes
    assert [take.claim_id for take in taken] == ["late"]
    assert taken[0].reason.startswith("It ran longer than expected on lent devices")


def test_guarantee_passes_by_a_lesser_right():
    """A reservation beyond the share holds nobody up who is within a guarantee."""
    vip = a_claim("vip", since_s=990.0, queue="vip")
    queues = (a_queue("q", 0), a_queue("vip", 1000))
    ledger, members, kept = blocked_gang(vip, queues=queues)
    assert standing_of(ledger, members["gang"], 2) is Standing.BEYOND_SHARE
    assert placed(kept, members["vip"])


def test_rank_passes_by_within_one_queue():
    """Who could take it by rank gets it at once, lest it be given and taken again."""
    urgent = a_claim("urgent", since_s=990.0, priority=1)
    equal = a_claim("equal", since_s=990.0)
    _, members, kept = blocked_gang(urgent, equal)
    assert not placed(kept, members["equal"])
    assert placed(kept, members["urgent"])
    assert not kept.lent


def test_rank_reserves_first_within_one_queue():
    """However old the lower one is; among equals the older one."""
    claims = [
        a_claim(name, 2, since_s=since_s, priority=priority)
        for name, since_s, priority in (("old", 0.0, 0), ("high", 9.0, 1), ("higher", 5.0, 1))
    ]
    ledger, waiting = books(a_view([a_host("h", 2), a_host("i", 2)], claims, now_s=1000.0))
    kept = keep_for_blocked(ledger, waiting)
    assert [r.holder.view.id for r in kept.reservations] == ["higher", "high", "old"][:2]


def test_reservation_counts_cores_too():
    """The host has two free devices, but cores for one worker until the other claim ends."""
    shape = WorkerShape(devices=1, cpu=4000)
    runs = a_claim("runs", held=on("h-0"), started_s=0.0, time_limit_s=1100.0, worker=shape)
    gang = a_claim("gang", 2, since_s=0.0, worker=shape)
    greedy = a_claim("greedy", since_s=990.0, worker=shape)
    host = a_host("h", 4, cpu=8000, memory_bytes=1)
    ledger, waiting = books(a_view([host], [runs, gang, greedy], now_s=1000.0))
    kept = keep_for_blocked(ledger, waiting)
    assert [r.gap.start_s for r in kept.reservations] == [1100.0]
    assert not placed(kept, next(m for m in waiting if m.view.id == "greedy"))


def test_closing_shows_all_that_was_kept():
    """After a pass the books are as they were, but for what was granted."""
    ledger, _, kept = blocked_gang()
    assert ledger.inventory.bays[0].whole == 0
    kept.close()
    assert ledger.inventory.bays[0].whole == 0b10
