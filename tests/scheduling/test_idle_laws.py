"""What holds for every stream of samples: the slow reference agrees, and the promises are kept.

Streams have gaps, samples twice and late, clocks that are set, other lives of the clock, policies
that change, keeps, and the nights on which Berlin's and New York's clocks change.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import idle_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from idle_reference import UNIT_S
from idle_world import ANNS, SOMEBODY, a_rule

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.hours import Day, Hours
from jupyter_gpupool.pool.idle_match import Match, OwnWish
from jupyter_gpupool.pool.idle_rule import (
    Choice,
    Ground,
    KeepAlive,
    LeastUse,
    Otherwise,
    Terms,
)
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Sample, Signal
from jupyter_gpupool.scheduling.idle import Situation, advance, deciding
from jupyter_gpupool.scheduling.idle_runs import Reading, idle_gauge, orphan_gauge, read
from jupyter_gpupool.scheduling.idle_verdicts import Call
from jupyter_gpupool.scheduling.idle_watch import Watch
from jupyter_gpupool.scheduling.keep_alive import kept

_BERLIN, _NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
_WEEKEND = frozenset({Day.SAT, Day.SUN})
_SHORT = Terms(warn_s=120, after_s=240, action=OnIdle.RELEASE)
_KEEP = KeepAlive(longest_s=600, per_day_s=1800)
_NIGHT = Match(hours=Hours(zone=_BERLIN, begin_min=60, end_min=180, days=_WEEKEND))
_LATE = Match(hours=Hours(zone=_NEW_YORK, begin_min=23 * 60, end_min=90, days=_WEEKEND))
_RULES = (
    a_rule("night", match=_NIGHT, idle=_SHORT, keep_alive=_KEEP),
    a_rule("late", match=_LATE, idle=Terms(warn_s=60, after_s=600), only_when_wanted=True),
    a_rule("tasks", signals=frozenset({Signal.TASKS, Signal.KERNEL}), idle=_SHORT, orphaned=None),
    a_rule(
        "mine",
        match=Match(users=frozenset({"ann"}), least=2000),
        choice=Choice(
            actions=frozenset({OnIdle.SHRINK, OnIdle.RELEASE}), shortest_s=300, longest_s=2400
        ),
        otherwise=Otherwise.RELEASE,
    ),
    a_rule("loops", idle=None, least_use=LeastUse(below=50, over_s=4800, notice_s=300)),
    a_rule("long", longest=Terms(warn_s=3600, after_s=6000, action=OnIdle.RELEASE)),
    a_rule("small", match=Match(most=1000), gpu_below=500, orphaned=_SHORT),
)
_POLICIES = st.lists(st.sampled_from(_RULES), max_size=4, unique=True)
_BEGINNINGS = (
    datetime(2026, 3, 28, 23, 30, tzinfo=UTC),
    datetime(2026, 10, 24, 23, 30, tzinfo=UTC),
    datetime(2026, 11, 1, 3, 0, tzinfo=UTC),
    datetime(2026, 12, 1, 12, 0, tzinfo=UTC),
)
_SEEN = st.sampled_from(
    [
        *({"quiet": True},) * 8,
        {"quiet": True, "gpu_peak": None, "gpu_mean": None},
        {"quiet": True, "gpu_peak": 400, "gpu_mean": 20},
        {"active": {Signal.TASKS}},
        {"active": {Signal.KERNEL}, "gpu_peak": 900, "gpu_mean": 60},
        {"active": {Signal.CLIENTS}},
        {"unknown": {Signal.TASKS}},
        {"unknown": {Signal.MEMORY, Signal.KERNEL}},
        {"quiet": True, "orphaned": True},
        {"quiet": True, "orphaned": None},
    ]
)
_STEP = st.fixed_dictionaries(
    {
        "seen": _SEEN,
        "times": st.integers(1, 6),
        "length": st.sampled_from([0, 1, 2, 3, 10, 30]),
        "gap": st.sampled_from([0, 0, 0, 0, 0, 1, 2, 3, 4, 9, -1, -40]),
        "clock_s": st.sampled_from([0, 0, 0, 0, 0, 0, 1800, -3600, 86_400, -86_400 * 400]),
        "reboots": st.sampled_from([False] * 15 + [True]),
        "wanted": st.booleans(),
        "protected": st.sampled_from([False] * 7 + [True]),
        "claim": st.sampled_from(
            [
                {},
                {},
                {"may_hibernate": False},
                {"may_shrink": True},
                {"devices": 1000},
                {"wish": OwnWish(action=OnIdle.SHRINK, after_s=1500.0)},
                {"wish": OwnWish(action=OnIdle.HIBERNATE, after_s=60.0)},
            ]
        ),
        "keep": st.sampled_from([None] * 9 + [0, 3, 15, 30]),
    }
)


@st.composite
def _streams(draw, *, policies_change: bool):
    """Steps of a claim's life, each several samples long, and the beginning by the calendar."""
    steps = draw(st.lists(_STEP, min_size=1, max_size=20))
    rules = draw(_POLICIES)
    for step in steps:
        if policies_change and draw(st.integers(0, 5)) == 0:
            rules = draw(_POLICIES)
        step["rules"] = tuple(rules)
    return draw(st.sampled_from(_BEGINNINGS)), steps


def _played(stream):
    """Each sample of a stream with its situation, and before it the units of a keep, if any."""
    at, steps = stream
    now, life = 50, 0
    for revision, step in enumerate(steps):
        life, now = (life + 1, 7) if step["reboots"] else (life, now)
        at += timedelta(seconds=step["clock_s"])
        keep = step["keep"]
        for _ in range(step["times"]):
            begin = max(0, now + step["gap"])
            end = begin + step["length"]
            at += timedelta(seconds=(end - now) * UNIT_S)
            now = max(now, end)
            yield (
                _sample(step["seen"], f"life {life}", begin, end, at),
                _situation(step, revision),
                keep,
            )
            keep = None


def _sample(seen, life, begin, end, at):
    active = frozenset(seen.get("active", ()))
    quiet = frozenset(Signal) - {Signal.GPU} - active - seen.get("unknown", set())
    return Sample(
        life=life,
        begin_ms=begin * UNIT_S * 1000,
        end_ms=end * UNIT_S * 1000,
        at=at,
        active=active,
        quiet=quiet,
        gpu_peak=seen.get("gpu_peak", 0),
        gpu_mean=seen.get("gpu_mean", 0),
        orphaned=seen.get("orphaned", False),
    )


def _situation(step, revision):
    return Situation(
        rules=step["rules"],
        revision=revision,
        subject=replace(ANNS, **step["claim"]),
        wanted_by=SOMEBODY if step["wanted"] else (),
        protected=step["protected"],
    )


def _keep(watch, history, units):
    """Keep it in both worlds, if the bounds allow it."""
    bounds = KeepAlive(longest_s=1e9, per_day_s=1e9)
    try:
        watch = kept(watch, bounds, units * UNIT_S * 1000, "")
    except BadRequest:
        return watch
    history.keep(units)
    return watch


def _agree(stream):
    watch, history = Watch(), idle_reference.History()
    for sample, situation, keep in _played(stream):
        if keep is not None:
            watch = _keep(watch, history, keep)
        watch, verdict = advance(watch, sample, situation)
        call, ground, action, due = history.judge(sample, situation)
        assert verdict.call == call
        if verdict.evidence is not None:
            assert (verdict.evidence.ground, verdict.evidence.action) == (ground, action)
        if verdict.deadline is not None:
            assert verdict.deadline == sample.at + timedelta(seconds=due * UNIT_S)


@settings(max_examples=1500, deadline=None)
@given(_streams(policies_change=False))
def test_the_reference_agrees_on_every_sample(stream):
    """Warned, cleared and taken at the same sample, on the same ground, with the same deadline."""
    _agree(stream)


@settings(max_examples=1500, deadline=None)
@given(_streams(policies_change=True))
def test_the_reference_agrees_while_policies_change(stream):
    """Also when rules come and go under a running claim."""
    _agree(stream)


@settings(max_examples=500, deadline=None)
@given(_streams(policies_change=True))
def test_nothing_is_taken_unannounced_or_early(stream):
    """Each taking was told, with its ground and action, a minute before at least, and for then."""
    watch, told = Watch(), None
    for sample, situation, _ in _played(stream):
        watch, verdict = advance(watch, sample, situation)
        if verdict.call is Call.WARN:
            due_ms = watch.now_ms + (verdict.deadline - sample.at) / timedelta(milliseconds=1)
            same = told and told[:2] == (verdict.evidence.ground, verdict.evidence.action)
            assert same or due_ms >= watch.now_ms + 60_000
            assert told is None or due_ms >= told[2]
            told = (verdict.evidence.ground, verdict.evidence.action, due_ms)
        elif verdict.call is Call.CLEAR:
            told = None
        elif verdict.call is Call.TAKE:
            assert told is not None
            assert told[:2] == (verdict.evidence.ground, verdict.evidence.action)
            assert watch.now_ms >= told[2]


@settings(max_examples=500, deadline=None)
@given(_streams(policies_change=True))
def test_nothing_busy_unknown_kept_or_protected_is_taken_as_idle(stream):
    """The sample that decides shows every signal of the rule quiet."""
    watch = Watch()
    for sample, situation, keep in _played(stream):
        if keep is not None:
            watch = _keep(watch, idle_reference.History(), keep)
        watch, verdict = advance(watch, sample, situation)
        if verdict.call is not Call.TAKE or verdict.evidence.ground is Ground.HELD_LONG:
            continue
        rule = deciding(situation.rules, situation.subject, sample.at)
        assert not watch.is_kept
        assert not situation.protected
        if verdict.evidence.ground is Ground.IDLE:
            assert read(idle_gauge(rule), sample) is Reading.QUIET
        if verdict.evidence.ground is Ground.ORPHANED:
            assert read(orphan_gauge(rule), sample) is Reading.QUIET


@settings(max_examples=300, deadline=None)
@given(_streams(policies_change=True), st.integers(-(10**9), 10**9))
def test_the_calendar_decides_on_hours_alone(stream, off_s):
    """Without rules of an hour, clocks that are set anywhere change nothing but what is shown."""
    watch = other = Watch()
    for sample, situation, _ in _played(stream):
        rules = tuple(rule for rule in situation.rules if rule.match.hours is None)
        situation = replace(situation, rules=rules)  # noqa: PLW2901 - the same without hours
        later = replace(sample, at=sample.at + timedelta(seconds=off_s))
        watch, verdict = advance(watch, sample, situation)
        other, same = advance(other, later, situation)
        assert (other, same.call) == (watch, verdict.call)


@settings(max_examples=300, deadline=None)
@given(_streams(policies_change=False))
def test_a_gap_is_a_sample_that_knows_nothing(stream):
    """Whether nobody spoke, or somebody said that nothing was known."""
    watch = other = Watch()
    for sample, situation, _ in _played(stream):
        if other.life == sample.life and other.until_ms < sample.begin_ms:
            dark = Sample(
                life=sample.life,
                begin_ms=other.until_ms,
                end_ms=sample.begin_ms,
                at=sample.at,
            )
            other, _ = advance(other, dark, situation)
        watch, _ = advance(watch, sample, situation)
        other, _ = advance(other, sample, situation)
        assert (other.runs, other.uses, other.now_ms) == (watch.runs, watch.uses, watch.now_ms)


@settings(max_examples=300, deadline=None)
@given(_streams(policies_change=True))
def test_a_sample_a_second_time_changes_nothing(stream):
    """Whatever it shows, and whatever has been decided on it."""
    watch = Watch()
    for sample, situation, _ in _played(stream):
        watch, _ = advance(watch, sample, situation)
        again, verdict = advance(watch, sample, situation)
        assert (again, verdict.call) == (watch, Call.NOTHING)
