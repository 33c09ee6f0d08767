"""Whether a claim is idle by the policy: samples in, warnings and takings out.

`advance` takes one sample on; it is all there is, so the judgement of a claim is a pure function of
its samples, the policies that were in force, and what its user asked for. The first rule that is
for the claim decides. Promises that hold whatever comes in:

- nothing is taken without a warning, and never earlier than the warning said;
- nothing is taken that was active or unknown in the sample that decides, nor as idle inside its
  minimum runtime, nor while it is kept;
- time is that of the watch: clocks that are set change neither idleness nor notice.

Source: design.md section 6.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.idle_match import Subject
from jupyter_gpupool.pool.idle_rule import Ground, IdleRule
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.signals import Sample

from .idle_grounds import Standing, standings
from .idle_runs import Reading, gauges_of, idle_gauge, orphan_gauge, read
from .idle_verdicts import NOTHING, Call, Cleared, Verdict, Warned
from .idle_watch import Watch, moved

_TOLD_WITHIN_MS = 60_000
"""A deadline that moves by less is not told again: people read minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All but its samples that decides on a claim at a moment.

    Attributes:
        revision: Of the policy whose rules these are.
        wanted_by: Claims that wait for devices such as it holds.
        protected: It is inside its minimum runtime.
    """

    rules: Sequence[IdleRule]
    revision: int
    subject: Subject
    wanted_by: tuple[ClaimId, ...] = ()
    protected: bool = False


def deciding(rules: Sequence[IdleRule], subject: Subject, at: datetime) -> IdleRule | None:
    """The first rule that is for a claim at a moment."""
    return next((rule for rule in rules if rule.match.fits(subject, at)), None)


def advance(watch: Watch, sample: Sample, situation: Situation) -> tuple[Watch, Verdict]:
    """Take in one sample of a claim.

    Samples come in order of their time. One that was taken in before changes nothing, and neither
    does a late one unless it shows activity; time between two samples is unknown.
    """
    after = moved(watch, sample, situation.rules)
    is_new = after.now_ms > watch.now_ms
    if not is_new and not _shows_activity(sample, situation):
        return watch, NOTHING
    rule = deciding(situation.rules, situation.subject, sample.at)
    standing = _chosen(after, rule, situation)
    if rule is None or standing is None:
        return replace(after, warned=None), _cleared(after, rule, sample, situation)
    if not is_new:
        # Activity of which others know nothing leaves them standing, and shows nothing of now.
        standing = replace(standing, is_sure=False)
    after = replace(after, warned=_told(after, rule, standing))
    return after, _verdict(
        watch.warned, after, standing, _evidence(standing, rule, sample, situation)
    )


def _shows_activity(sample: Sample, situation: Situation) -> bool:
    return any(read(each, sample) is Reading.ACTIVE for each in gauges_of(situation.rules))


def _chosen(watch: Watch, rule: IdleRule | None, situation: Situation) -> Standing | None:
    """The ground that counts: that of the warning as long as it stands, else the earliest."""
    if rule is None or (rule.only_when_wanted and not situation.wanted_by):
        return None
    only_long = watch.is_kept or situation.protected
    found = [
        standing
        for standing in standings(rule, watch, situation.subject)
        if not only_long or standing.ground is Ground.HELD_LONG
    ]
    same = (each for each in found if watch.warned and each.ground is watch.warned.ground)
    return next(same, None) or min(found, key=lambda each: each.due_in_ms, default=None)


def _told(watch: Watch, rule: IdleRule, standing: Standing) -> Warned | None:
    """What the user has been told after this sample; never due earlier than they know."""
    before = watch.warned
    if not standing.is_sure:
        return before
    told = Warned(
        rule=rule.name,
        ground=standing.ground,
        action=standing.action,
        due_ms=watch.now_ms + standing.due_in_ms,
    )
    if before is None:
        return told
    if (before.ground, before.action) != (told.ground, told.action):
        return replace(told, due_ms=max(before.due_ms, told.due_ms))
    later_ms = watch.now_ms + standing.left_ms
    is_later = standing.left_ms and later_ms >= before.due_ms + _TOLD_WITHIN_MS
    return replace(told, due_ms=later_ms if is_later else before.due_ms)


def _verdict(
    before: Warned | None, watch: Watch, standing: Standing, evidence: Evidence
) -> Verdict:
    told = watch.warned
    if told is None:
        return NOTHING
    if told != before:
        deadline = evidence.until + timedelta(milliseconds=told.due_ms - watch.now_ms)
        return Verdict(call=Call.WARN, evidence=evidence, deadline=deadline)
    if watch.now_ms >= told.due_ms and not standing.left_ms and standing.is_sure:
        return Verdict(call=Call.TAKE, evidence=evidence)
    return NOTHING


def _evidence(standing: Standing, rule: IdleRule, sample: Sample, situation: Situation) -> Evidence:
    took = timedelta(milliseconds=standing.lasted_ms + standing.unknown_ms)
    return Evidence(
        rule=rule.name,
        revision=situation.revision,
        ground=standing.ground,
        action=standing.action,
        lasted_ms=standing.lasted_ms,
        unknown_ms=standing.unknown_ms,
        since=sample.at - took,
        until=sample.at,
        samples=standing.samples,
        gpu=standing.gpu,
        held_bytes=sample.held_bytes,
        active=sample.active,
        quiet=sample.quiet,
        wanted_by=situation.wanted_by,
    )


def _cleared(watch: Watch, rule: IdleRule | None, sample: Sample, situation: Situation) -> Verdict:
    if watch.warned is None:
        return NOTHING
    why = _why_cleared(watch, watch.warned.ground, rule, sample, situation)
    return Verdict(call=Call.CLEAR, cleared=why)


def _why_cleared(
    watch: Watch, ground: Ground, rule: IdleRule | None, sample: Sample, situation: Situation
) -> Cleared:
    """The first reason that would have been enough."""
    if rule is None:
        return Cleared.RULE
    if rule.only_when_wanted and not situation.wanted_by:
        return Cleared.UNWANTED
    if ground is Ground.HELD_LONG:
        return Cleared.RULE
    if watch.is_kept or situation.protected:
        return Cleared.KEPT if watch.is_kept else Cleared.PROTECTED
    if ground is Ground.LITTLE_USED:
        return Cleared.RULE if rule.least_use is None else Cleared.USED
    return _why_run_ended(watch, ground, rule, sample)


def _why_run_ended(watch: Watch, ground: Ground, rule: IdleRule, sample: Sample) -> Cleared:
    gauge = idle_gauge(rule) if ground is Ground.IDLE else orphan_gauge(rule)
    match read(gauge, sample):
        case Reading.ACTIVE:
            return Cleared.USED
        case Reading.UNKNOWN:
            return Cleared.UNKNOWN
    # Quiet now: what went before was lost out of sight, or is too little for the rule as it is.
    is_new = any(run.gauge == gauge and run.samples == 1 for run in watch.runs)
    return Cleared.UNKNOWN if is_new else Cleared.RULE
