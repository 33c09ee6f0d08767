"""The one queue of commands: groups, isolation, and what a failing disk changes."""

import asyncio

import pytest

from jupyter_gpupool.manager.service import service
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest, Unavailable


async def test_commands_that_arrive_together_share_a_commit(pool):
    """Fifty requests, one transaction."""
    await asyncio.gather(*(pool.claim(1) for _ in range(50)))
    assert len(pool.store.commits) == 1
    assert len(pool.store.commits[0].new_claims) == 50


async def test_failing_command_discards_only_itself(pool):
    """Its neighbours in the batch are kept."""

    def spoil(unit):
        unit.claims["c-spoilt"] = None
        unit.record("claim.pending", "never told")
        raise BadRequest("no")

    good, bad = pool.claim(1), pool.service.execute(spoil)
    claim, error = await asyncio.gather(good, bad, return_exceptions=True)
    assert isinstance(error, BadRequest)
    assert list(pool.service.books.claims) == [claim.id]
    assert [event.claim_id for event in pool.store.commits[0].events] == [claim.id]


async def test_broken_command_does_not_stop_the_service(pool):
    """A defect in one command is that command's alone."""
    with pytest.raises(ZeroDivisionError):
        await pool.service.execute(lambda _: 1 // 0)
    assert (await pool.claim(1)).id in pool.service.books.claims


async def test_failed_commit_changes_nothing(pool):
    """Nothing in memory, nothing told, and the caller knows."""
    listener_seq = pool.service.books.seq
    pool.store.broken = True
    with pytest.raises(Unavailable, match="the disk is full"):
        await pool.claim(1)
    assert (len(pool.service.books.claims), pool.service.books.seq) == (0, listener_seq)
    assert not pool.service.writable


async def test_unstorable_claim_fails_alone(pool):
    """Whoever shares its batch is served, and the database is not blamed."""
    pool.store.refused = "poison"
    asked = [pool.claim(1, name=name) for name in ("a", "b", "poison", "c", "poison")]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(outcome, UnicodeError) for outcome in outcomes] == [0, 0, 1, 0, 1]
    kept = [record.claim.name for record in pool.service.books.claims.values()]
    assert sorted(kept) == ["a", "b", "c"]
    assert pool.service.writable


async def test_poison_in_a_large_batch_costs_few_commits(pool):
    """It is found by halving, not by a commit a command."""
    pool.store.refused = "poison"
    names = ["a"] * 63 + ["poison"]
    await asyncio.gather(*(pool.claim(1, name=n) for n in names), return_exceptions=True)
    assert len(pool.service.books.claims) == 63
    assert len(pool.store.commits) == 6


async def test_full_disk_fails_a_batch_as_a_whole(pool):
    """Trying each command alone would only wear out a disk that is ill."""
    pool.store.broken = True
    outcomes = await asyncio.gather(*(pool.claim(1) for _ in range(4)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {Unavailable}
    assert pool.store.tried == 1


async def test_service_recovers_when_the_disk_does(pool):
    """The next command is simply tried."""
    pool.store.broken = True
    with pytest.raises(Unavailable):
        await pool.claim(1)
    pool.store.broken = False
    assert (await pool.claim(1)).id in pool.service.books.claims
    assert pool.service.writable


async def test_events_leave_after_the_commit(pool):
    """Nobody hears of what may yet fail."""
    pool.store.broken = True
    with pytest.raises(Unavailable):
        await pool.claim(1)
    assert pool.service.hub.since(0) is None
    pool.store.broken = False
    await pool.claim(1)
    assert [event.seq for event in pool.service.hub.since(0)] == [1]


async def test_unchanged_report_costs_no_commit(pool):
    """A sign of life is memory alone."""
    agent = await pool.joined()
    await pool.make_so(agent)
    commits = len(pool.store.commits)
    await pool.say(agent)
    assert len(pool.store.commits) == commits


async def test_stopped_service_takes_nothing_more(pool):
    """What comes too late is told so."""
    await pool.service.close()
    with pytest.raises(Unavailable, match="stopping"):
        await pool.claim(1)


async def test_defect_after_a_commit_stops_the_service_loudly(pool, monkeypatch):
    """Memory may differ from the database: everybody is told, nobody hangs."""
    monkeypatch.setattr(pool.service, "_tell", None)
    with pytest.raises(Unavailable, match="writer has stopped"):
        await pool.joined()
    await pool.service.failed()
    assert pool.service.has_failed
    with pytest.raises(Unavailable):
        await pool.claim(1)


async def test_commit_whose_answer_was_lost_counts(pool):
    """What is durable is done, told and acknowledged, and the next request works."""
    pool.store.mute = True
    claim = await pool.claim(1)
    pool.store.mute = False
    later = await pool.claim(1)
    assert list(pool.service.books.claims) == [claim.id, later.id]
    assert [event.seq for event in pool.service.hub.since(0)] == [1, 2]


async def test_commit_in_doubt_is_cleared_up_before_the_next(pool):
    """Its caller is told that nobody knows; nothing new is built on a guess."""
    pool.store.mute = pool.store.unreadable = True
    for _ in range(2):
        with pytest.raises(Unavailable, match="connection is lost"):
            await pool.claim(1)
    assert (len(pool.store.commits), len(pool.service.books.claims)) == (1, 0)
    pool.store.mute = pool.store.unreadable = False
    await pool.claim(1)
    assert [event.seq for event in pool.service.hub.since(0)] == [1, 2]


async def test_queue_is_bounded(pool, monkeypatch):
    """Too much at once is refused, and what was accepted is done."""
    monkeypatch.setattr(service, "_MOST_QUEUED", 5)
    outcomes = await asyncio.gather(*(pool.claim(1) for _ in range(9)), return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, Unavailable)]
    assert (len(refused), len(pool.service.books.claims)) == (4, 5)


async def test_pass_that_failed_is_tried_again_by_time_alone(pool, monkeypatch):
    """Nobody has to do anything before a claim that fits is granted after all."""
    await pool.joined("a", 2)
    with monkeypatch.context() as defect:
        defect.setattr(service, "run_pass", lambda *_: 1 / 0)
        claim = await pool.claim(1)
    assert pool.now(claim).phase is Phase.PENDING
    await pool.pass_s(31)
    assert pool.now(claim).phase is Phase.STARTING
