"""A dry run on recorded samples: what rules would have taken, from whom, and whom it would hurt."""

from dataclasses import replace
from datetime import timedelta

from idle_world import ANNS, NOON, SOMEBODY, TOLD, a_rule

from jupyter_gpupool.pool.idle_rule import Ground, KeepAlive, LeastUse, Terms
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Sample, Signal
from jupyter_gpupool.scheduling.idle_dry_run import Recorded, dry_run

MINE = ClaimId("c-mine")
WORK = {"active": frozenset({Signal.TASKS}), "gpu_peak": 900, "gpu_mean": 600}


def _history(*parts, **terms):
    """Minutes and what was seen in them, in records of an hour; a part may begin with a keep."""
    now, records = 0, []
    for minutes, seen in parts:
        told = {"gpu_peak": 0, "gpu_mean": 0, "orphaned": False} | seen
        keep_ms, missing = told.pop("keep_ms", None), told.pop("missing", False)
        end = now + minutes
        for begin in range(now, end, 60):
            now = min(end, begin + 60)
            sample = _sample(begin, now, told)
            keeps = keep_ms if begin == end - minutes else None
            record = Recorded(sample=sample, subject=ANNS, keep_ms=keeps, **terms)
            records += [] if missing else [record]
    return (MINE, records)


def _sample(begin: int, end: int, told: dict) -> Sample:
    return Sample(
        life="boot",
        begin_ms=begin * 60_000,
        end_ms=end * 60_000,
        at=NOON + timedelta(minutes=end),
        quiet=TOLD - told.get("active", frozenset()),
        **told,
    )


def test_a_forgotten_claim_would_have_gone_back_after_twenty_minutes():
    """And its two devices would have served others for the rest of the time."""
    run = dry_run([_history((30, WORK), (60, {}))], [a_rule()])
    [taking] = run.takings
    assert taking.evidence.until == NOON + timedelta(minutes=50)
    assert run.won_device_s == 2 * 40 * 60
    assert (taking.hurts, run.warned) == (False, ((MINE, 1),))


def test_records_of_an_hour_are_judged_by_the_minute():
    """Coarse records do not make the rules coarse."""
    coarse = dry_run([_history((60, {}))], [a_rule()])
    fine = dry_run([_history(*[(1, {})] * 60)], [a_rule()])
    assert [t.evidence.until for t in coarse.takings] == [t.evidence.until for t in fine.takings]
    assert coarse.won_device_s == fine.won_device_s == 2 * 40 * 60


def test_who_came_back_soon_would_have_been_hurt():
    """Ten minutes after the taking is soon, an hour is not, and each may be taken again."""
    run = dry_run([_history((30, {}), (5, WORK), (80, {}), (5, WORK))], [a_rule()])
    assert [taking.missed_ms for taking in run.takings] == [600_000, 3_600_000]
    assert [taking.hurts for taking in run.takings] == [True, False]
    assert run.hurt == run.takings[:1]


def test_who_worked_would_have_been_hurt():
    """As by a rule on use that is too strict."""
    least = LeastUse(below=700, over_s=3600)
    run = dry_run([_history((80, WORK))], [a_rule(least_use=least)])
    assert [(t.evidence.ground, t.was_busy) for t in run.takings] == [(Ground.LITTLE_USED, True)]


def test_time_that_was_not_seen_is_won_by_nobody():
    """It may have been work."""
    run = dry_run([_history((30, {}), (60, {"missing": True}), (10, {}))], [a_rule()])
    assert run.won_device_s == 2 * (10 + 10) * 60


def test_keeps_postpone_as_they_did_as_far_as_the_rules_allow():
    """One hour of the recorded two would have been refused by a stricter rule."""
    history = _history((10, {}), (110, {"keep_ms": 7_200_000}))
    kept, refused = (
        dry_run([history], [a_rule(keep_alive=KeepAlive(longest_s=longest_s))])
        for longest_s in (7200, 3600)
    )
    assert (len(kept.takings), kept.refused_keeps) == (0, 0)
    assert (len(refused.takings), refused.refused_keeps) == (1, 1)


def test_who_was_waiting_decides_as_it_did():
    """A rule for wanted devices takes nothing on a quiet day."""
    rule = a_rule(only_when_wanted=True)
    assert dry_run([_history((60, {}))], [rule]).takings == ()
    assert len(dry_run([_history((60, {}), wanted_by=SOMEBODY)], [rule]).takings) == 1


def test_shrinking_wins_what_is_beyond_the_minimum():
    """One of the two devices."""
    rule = a_rule(idle=Terms(action=OnIdle.SHRINK))
    claim_id, records = _history((60, {}), spare=1000)
    subject = replace(ANNS, may_shrink=True)
    run = dry_run([(claim_id, [replace(each, subject=subject) for each in records])], [rule])
    assert run.won_device_s == 40 * 60


def test_no_rules_take_nothing():
    """As a pool begins."""
    run = dry_run([_history((600, {}))], [])
    assert (run.takings, run.warned, run.won_device_s) == ((), (), 0)
