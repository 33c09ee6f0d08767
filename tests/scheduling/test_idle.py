"""The judgement of a claim: when it is warned, when something is taken, and when never."""

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from idle_world import ANNS, NOON, SOMEBODY, Watching, a_rule
from pydantic import TypeAdapter

from jupyter_gpupool.pool.hours import Hours
from jupyter_gpupool.pool.idle_match import Match, OwnWish
from jupyter_gpupool.pool.idle_rule import Choice, Ground, LeastUse, Otherwise, Terms
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.scheduling.idle import deciding
from jupyter_gpupool.scheduling.idle_verdicts import Call, Cleared
from jupyter_gpupool.scheduling.idle_watch import Watch

NIGHT = Hours(zone=ZoneInfo("UTC"), begin_min=13 * 60, end_min=14 * 60)


def test_an_idle_claim_is_warned_at_fifteen_minutes_and_taken_at_twenty():
    """By the good defaults, to the minute."""
    assert Watching().see_minutes(20) == [(15, Call.WARN), (20, Call.TAKE)]


def test_a_warning_says_when_and_rests_on_evidence():
    """Rule, revision, time, samples and what each signal showed."""
    claim = Watching(revision=7, wanted_by=SOMEBODY)
    claim.see_minutes(14)
    warning = claim.see(gpu_peak=10)
    assert warning.deadline == NOON + timedelta(minutes=20)
    evidence = warning.evidence
    assert evidence is not None
    assert (evidence.rule, evidence.revision, evidence.wanted_by) == ("all", 7, SOMEBODY)
    assert (evidence.since, evidence.until) == (NOON, NOON + timedelta(minutes=15))
    assert (evidence.samples, evidence.gpu, evidence.held_bytes) == (15, 10, 31 * 2**30)
    assert Signal.TASKS in evidence.quiet


@pytest.mark.parametrize("signal", [Signal.TASKS, Signal.CALLS, Signal.MEMORY, Signal.KERNEL])
def test_any_signal_of_the_rule_begins_the_time_anew(signal):
    """And a warning that was given is taken back."""
    claim = Watching()
    claim.see_minutes(17)
    assert claim.see(1.0, signal).cleared is Cleared.USED
    assert claim.see_minutes(15)[0][1] is Call.WARN


def test_the_gpu_is_active_from_the_rules_threshold_on():
    """Five in a hundred by default, at its peak."""
    assert Watching().see_minutes(20, gpu_peak=49)[-1] == (20, Call.TAKE)
    assert Watching().see_minutes(60, gpu_peak=50) == []


def test_a_signal_that_the_rule_does_not_name_does_not_matter():
    """Clients that are merely connected are no work by default."""
    assert Watching().see_minutes(20, Signal.CLIENTS)[-1] == (20, Call.TAKE)


@pytest.mark.parametrize("unknown", [Signal.TASKS, Signal.KERNEL, Signal.MEMORY])
def test_unknown_is_never_idle(unknown):
    """Whatever else is quiet, and for however long."""
    assert Watching().see_minutes(600, unknown=(unknown,)) == []


def test_use_that_is_unknown_is_never_idle():
    """As where NVML cannot say: a MIG instance needs a rule that does not ask for the GPU."""
    blind = {"gpu_peak": None, "gpu_mean": None}
    assert Watching().see_minutes(600, **blind) == []
    quiet = a_rule(signals=frozenset({Signal.TASKS, Signal.MEMORY}))
    assert Watching(rules=(quiet,)).see_minutes(20, **blind)[-1] == (20, Call.TAKE)


def test_a_silent_agent_has_nothing_taken():
    """However long it is silent after a warning, and when it speaks again the time begins anew."""
    claim = Watching()
    claim.see_minutes(16)
    claim.miss(3600)
    assert claim.see().cleared is Cleared.UNKNOWN
    assert claim.see_minutes(14)[0][1] is Call.WARN


def test_a_short_silence_is_bridged_and_counts_nothing():
    """The restart of an agent costs the pool its own length and no more."""
    claim = Watching()
    claim.see_minutes(10)
    claim.miss(30)
    assert claim.see_minutes(10) == [(15.5, Call.WARN), (20.5, Call.TAKE)]


def test_nothing_is_taken_on_a_sample_that_does_not_show_it():
    """Even bridged, the moment of the deadline itself must be known."""
    claim = Watching()
    claim.see_minutes(19)
    assert claim.see(30.0, unknown=(Signal.TASKS,)).call is Call.NOTHING
    assert claim.see(59.0).call is Call.NOTHING
    assert claim.see(1.0).call is Call.TAKE


def test_many_short_silences_end_a_run():
    """What is hardly ever seen is not known to be idle."""
    claim = Watching()
    for _ in range(200):
        claim.see(50.0)
        claim.miss(10.0)
    assert claim.calls == []


def test_another_life_of_the_clock_begins_the_time_anew():
    """Nobody knows how long a host was down."""
    claim = Watching()
    claim.see_minutes(14)
    claim.life, claim.now_s = "next boot", 3.0
    assert claim.see_minutes(14) == []
    assert claim.see_minutes(1)[0][1] is Call.WARN


def test_the_same_sample_twice_counts_once():
    """And so does one that overlaps the last."""
    claim = Watching()
    for _ in range(20):
        claim.see(60.0)
        claim.now_s -= 60.0
        claim.see(60.0)
        claim.now_s -= 30.0
        claim.see(30.0)
    assert claim.watch.now_ms == 20 * 60_000
    assert list(dict.fromkeys(claim.calls)) == [(15, Call.WARN), (20, Call.TAKE)]


def test_late_word_of_activity_counts():
    """What was bridged as unknown was work after all."""
    claim = Watching()
    claim.see_minutes(16)
    claim.now_s -= 300.0
    assert claim.see(1.0, Signal.TASKS).cleared is Cleared.USED


def test_a_clock_that_is_set_changes_neither_idleness_nor_notice():
    """A day forth and a year back: samples are measured by monotonic time."""
    claim = Watching()
    claim.see_minutes(5)
    claim.at += timedelta(days=1)
    claim.see_minutes(11)
    claim.at -= timedelta(days=366)
    claim.see_minutes(4)
    assert claim.calls == [(15, Call.WARN), (20, Call.TAKE)]


def test_a_keep_postpones_and_then_warns_anew():
    """With all of its notice, for its user may think it is still kept."""
    claim = Watching()
    claim.see_minutes(16)
    claim.keep(3600)
    assert claim.see_minutes(66) == [(76, Call.WARN), (81, Call.TAKE), (82, Call.TAKE)]


def test_inside_its_minimum_runtime_nothing_is_taken_as_idle():
    """And a warning is void."""
    claim = Watching()
    claim.see_minutes(16)
    claim.protected = True
    assert claim.see().cleared is Cleared.PROTECTED
    assert claim.see_minutes(100) == []


def test_only_when_wanted_takes_nothing_while_nobody_waits():
    """Who comes late waits for a whole notice; who goes leaves everybody theirs."""
    claim = Watching(rules=(a_rule(only_when_wanted=True),))
    assert claim.see_minutes(100) == []
    claim.wanted_by = SOMEBODY
    assert claim.see_minutes(3) == [(101, Call.WARN)]
    claim.wanted_by = ()
    assert claim.see().cleared is Cleared.UNWANTED
    claim.wanted_by = SOMEBODY
    assert claim.see_minutes(6) == [(105, Call.WARN), (110, Call.TAKE)]


def test_the_first_rule_that_fits_decides():
    """By its order in the document, whatever the others would say."""
    ours = a_rule("vision", match=Match(queues=frozenset({"vision"})))
    assert deciding((ours, a_rule()), ANNS, NOON) is ours
    others = replace(ANNS, queues=("speech",))
    assert deciding((ours, a_rule("rest")), others, NOON) == a_rule("rest")
    assert deciding((ours,), others, NOON) is None


def test_a_rule_of_an_hour_decides_in_it_and_with_a_whole_notice():
    """Idle for an hour when the night's rule begins, a claim is warned and not taken."""
    night = a_rule("night", match=Match(hours=NIGHT), idle=Terms(warn_s=120, after_s=300))
    claim = Watching(rules=(night, a_rule(idle=None)))
    assert claim.see_minutes(65) == [
        (60, Call.WARN),
        *((minute, Call.TAKE) for minute in (63, 64, 65)),
    ]


def test_an_orphan_has_a_short_grace():
    """Two minutes after its last kernel and client were gone for good."""
    claim = Watching()
    claim.see_minutes(3)
    assert claim.see_minutes(3, orphaned=True) == [(4, Call.WARN), (6, Call.TAKE)]
    assert claim.verdicts[-1].evidence.ground is Ground.ORPHANED


def test_an_orphan_that_still_computes_is_left_to_finish():
    """Fire and forget is no reason to lose the work."""
    assert Watching().see_minutes(60, Signal.TASKS, orphaned=True) == []


def test_a_kernel_that_comes_back_clears_the_orphans_warning():
    """It has attached again."""
    claim = Watching()
    claim.see(orphaned=True)
    assert claim.see(orphaned=False).cleared is Cleared.USED


def test_whether_it_is_an_orphan_must_be_known():
    """A sleeping laptop and a cut network are not the end of a kernel."""
    assert Watching().see_minutes(60, Signal.KERNEL, orphaned=None) == []


def test_a_claim_that_cannot_hibernate_is_left_unless_the_rule_says_release():
    """And its user is told of the release, not of a hibernation that will not be."""
    actors = replace(ANNS, may_hibernate=False)
    assert Watching(subject=actors).see_minutes(60) == []
    claim = Watching(subject=actors, rules=(a_rule(otherwise=Otherwise.RELEASE),))
    claim.see_minutes(15)
    assert claim.verdicts[-1].evidence.action is OnIdle.RELEASE


def test_a_worse_fate_than_was_announced_needs_a_notice_of_its_own():
    """Told to hibernate, it got actors a minute before: its release comes a whole notice later."""
    claim = Watching(rules=(a_rule(otherwise=Otherwise.RELEASE),))
    claim.see_minutes(19)
    claim.subject = replace(ANNS, may_hibernate=False)
    assert claim.see_minutes(6) == [(20, Call.WARN), (25, Call.TAKE)]


def test_a_claim_shrinks_once_and_is_then_left():
    """There is nothing more to shrink."""
    rule = a_rule(idle=Terms(action=OnIdle.SHRINK))
    claim = Watching(rules=(rule,), subject=replace(ANNS, may_shrink=True))
    assert claim.see_minutes(20)[-1] == (20, Call.TAKE)
    claim.subject = ANNS
    assert claim.see().cleared is Cleared.RULE
    assert claim.see_minutes(60) == []


def test_a_users_own_time_holds_within_the_bounds():
    """Two hours instead of twenty minutes, where the rule offers it."""
    bounds = Choice(shortest_s=600, longest_s=7200)
    wish = replace(ANNS, wish=OwnWish(after_s=7200.0))
    claim = Watching(rules=(a_rule(choice=bounds),), subject=wish)
    assert claim.see_minutes(120) == [(115, Call.WARN), (120, Call.TAKE)]


@pytest.mark.parametrize(
    ("terms", "calls"),
    [
        (Terms(warn_s=60, after_s=120), [(20, Call.TAKE)]),
        (Terms(warn_s=900, after_s=1500), [(18, Call.WARN), (25, Call.TAKE)]),
        (Terms(warn_s=3600, after_s=4000), [(18, Call.CLEAR)]),
        (Terms(action=OnIdle.RELEASE), [(18, Call.WARN), (23, Call.TAKE)]),
    ],
)
def test_a_new_policy_never_surprises_whoever_was_warned(terms, calls):
    """Told of twenty past, they have until then at least, and a whole notice of anything worse."""
    claim = Watching()
    claim.see_minutes(17)
    claim.rules, claim.revision = (a_rule(idle=terms),), 2
    assert claim.see_minutes(8)[: len(calls)] == calls


def test_signals_that_a_new_policy_asks_first_begin_with_it():
    """Time is not counted against a claim by what nobody asked then."""
    claim = Watching()
    claim.see_minutes(17)
    claim.rules = (a_rule(signals=frozenset({Signal.TASKS})),)
    claim.see_minutes(14)
    assert claim.calls[1:] == [(18, Call.CLEAR)]


def test_a_policy_without_rules_takes_nothing():
    """And clears what an earlier one announced."""
    claim = Watching()
    claim.see_minutes(16)
    claim.rules = ()
    assert claim.see().cleared is Cleared.RULE


def test_a_busy_loop_cannot_hold_devices_for_ever():
    """A tiny loop of tasks keeps it from being idle, and not from being hardly used."""
    least = LeastUse(below=50, over_s=7200, action=OnIdle.RELEASE)
    claim = Watching(rules=(a_rule(least_use=least),))
    loop = {"gpu_peak": 900, "gpu_mean": 20}
    assert claim.see_minutes(135, Signal.TASKS, **loop) == [(120, Call.WARN), (135, Call.TAKE)]
    assert claim.verdicts[-1].evidence.gpu == 20


def test_work_that_is_heavy_enough_is_not_hardly_used():
    """However unevenly it comes."""
    least = LeastUse(below=50, over_s=3600, action=OnIdle.RELEASE)
    claim = Watching(rules=(a_rule(least_use=least),))
    for _ in range(20):
        claim.see_minutes(2, Signal.TASKS, gpu_peak=1000, gpu_mean=1000)
        claim.see_minutes(10, gpu_peak=0, gpu_mean=0)
    assert claim.calls == []


def test_nobody_holds_devices_longer_than_the_longest():
    """However busy, and no keep postpones it."""
    claim = Watching(rules=(a_rule(longest=Terms(warn_s=3600, after_s=7200)),))
    claim.see_minutes(59, Signal.TASKS, gpu_peak=1000, gpu_mean=1000)
    claim.keep(7200)
    calls = claim.see_minutes(61, Signal.TASKS, gpu_peak=1000, gpu_mean=1000)
    assert calls == [(60, Call.WARN), (120, Call.TAKE)]


def test_a_watch_survives_being_written_down():
    """At any moment, with keeps, warnings and all runs."""
    least = LeastUse(below=50, over_s=3600)
    claim, same = (Watching(rules=(a_rule(least_use=least),)) for _ in range(2))
    adapter = TypeAdapter(Watch)
    for minute in range(200):
        active = [Signal.KERNEL] if minute % 41 == 0 else []
        claim.see(60.0, *active)
        same.see(60.0, *active)
        same.watch = adapter.validate_json(adapter.dump_json(same.watch))
        if minute in {30, 100}:
            claim.keep(1200)
            same.keep(1200)
    assert same.watch == claim.watch
    assert same.calls == claim.calls != []


def test_a_sample_without_new_time_takes_nothing():
    """It may be older than what is known, and what it does not know counts."""
    claim = Watching()
    claim.see_minutes(20)
    assert claim.see(0.0, unknown=(Signal.TASKS,)).call is Call.NOTHING
    assert claim.see(0.0).call is Call.NOTHING
    assert claim.see(1.0).call is Call.TAKE
