"""A day of many users under a policy on idle claims, on virtual time, by the judgement proper.

Used by `tests/benchmarks/idle_day.py` and by tests: what a policy wins back, whom it warns, and
whether it ever takes what somebody works with.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.idle_match import Subject
from jupyter_gpupool.pool.idle_rule import Ground, IdleRule, KeepAlive
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.signals import Sample, Signal
from jupyter_gpupool.scheduling.idle import Situation, advance, deciding
from jupyter_gpupool.scheduling.idle_verdicts import Call
from jupyter_gpupool.scheduling.idle_watch import Watch
from jupyter_gpupool.scheduling.keep_alive import kept

from .idle_users import Kind, Minute, User

_MINUTE_MS = 60_000
_KEEP_MIN = 60
"""How much a user who wants to go on asks for, as the card offers it."""
_BACK_IN_LINE_MIN = 30
"""How long a hostile user waits until they hold devices again."""
_SOON_MIN = 15
_TOLD = frozenset(Signal) - {Signal.GPU}
_SOMEBODY = (ClaimId("c-waits"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """Devices were taken from a user.

    Attributes:
        minute: Of the day.
        is_wrong: They worked with them, or had within the time they were said to be idle.
        is_missed: They wanted to work again within a quarter of an hour.
    """

    user: User
    minute: int
    ground: Ground
    is_wrong: bool
    is_missed: bool


@dataclass(slots=True, kw_only=True)
class DayOutcome:
    """What a day came to; times are minutes of devices.

    Attributes:
        held: By everybody, had nothing been taken.
        unused: Of that, what nobody worked with.
        won: Back from whoever did not need it.
        warnings: By kind of user.
        keeps: How often a user postponed it.
    """

    held: int = 0
    unused: int = 0
    won: int = 0
    warnings: Counter[Kind] = field(default_factory=Counter)
    keeps: int = 0
    takings: list[Taking] = field(default_factory=list)


def play(
    users: Iterable[User],
    rules: Sequence[IdleRule],
    midnight: datetime,
    is_wanted: Callable[[int], bool],
) -> DayOutcome:
    """Let a day pass under some rules.

    Args:
        users: All of whom hold the same claim from their first work to the end of the day, but for
            what is taken from them; they have it again as soon as they want to work.
        rules: All day the same.
        midnight: When it begins, by the calendar.
        is_wanted: Whether somebody waits for devices at a minute of the day.
    """
    outcome = DayOutcome()
    for user in users:
        course = _Course(user, rules, outcome)
        for number, minute in enumerate(user.day):
            at = midnight + timedelta(minutes=number + 1)
            course.live(number, minute, at, _SOMEBODY if is_wanted(number) else ())
    return outcome


class _Course:
    """A user's day under some rules."""

    def __init__(self, user: User, rules: Sequence[IdleRule], outcome: DayOutcome) -> None:
        self._user, self._rules, self._outcome = user, rules, outcome
        self._watch: Watch | None = None
        self._taken: int | None = None
        self._subject = Subject(
            user=UserName(user.name),
            queues=("all",),
            models=("A100",),
            priority="interactive",
            devices=user.devices * 1000,
        )

    def live(
        self, number: int, minute: Minute, at: datetime, wanted_by: tuple[ClaimId, ...]
    ) -> None:
        """Pass one minute of the day, which ends at a moment of the calendar."""
        if self._watch is None and not self._claims(number, minute):
            self._count(minute, holds=False)
            return
        self._count(minute, holds=True)
        situation = Situation(
            rules=self._rules, revision=1, subject=self._subject, wanted_by=wanted_by
        )
        if minute.heard:
            self._be_judged(number, _sample(number, minute, at), situation)
        if self._watch is not None and self._watch.warned is not None and minute.reads:
            self._answer(number, at)

    def _claims(self, number: int, minute: Minute) -> bool:
        is_back = (
            self._user.kind is Kind.HOSTILE
            and self._taken is not None
            and number >= self._taken + _BACK_IN_LINE_MIN
        )
        if minute.works or is_back:
            self._watch = Watch()
        return self._watch is not None

    def _count(self, minute: Minute, *, holds: bool) -> None:
        devices, has_claimed = self._user.devices, holds or self._taken is not None
        self._outcome.held += devices if has_claimed else 0
        self._outcome.unused += devices if has_claimed and not minute.works else 0
        self._outcome.won += devices if has_claimed and not holds else 0

    def _be_judged(self, number: int, sample: Sample, situation: Situation) -> None:
        assert self._watch is not None, "only who holds devices is judged"
        self._watch, verdict = advance(self._watch, sample, situation)
        if verdict.call is Call.WARN:
            self._outcome.warnings[self._user.kind] += 1
        elif verdict.call is Call.TAKE and verdict.evidence is not None:
            self._outcome.takings.append(self._taking(number, verdict.evidence))
            self._watch, self._taken = None, number

    def _taking(self, number: int, evidence: Evidence) -> Taking:
        is_idle = evidence.ground in (Ground.IDLE, Ground.ORPHANED)
        lasted = (evidence.lasted_ms + evidence.unknown_ms) // _MINUTE_MS if is_idle else 1
        return Taking(
            user=self._user,
            minute=number,
            ground=evidence.ground,
            is_wrong=any(m.works for m in self._user.day[number + 1 - lasted : number + 1]),
            is_missed=self._user.returns_within(number + 1, _SOON_MIN),
        )

    def _answer(self, number: int, at: datetime) -> None:
        """Keep it, if they will work again within the time, or are hostile, as far as they may."""
        is_hostile = self._user.kind is Kind.HOSTILE
        if not (is_hostile or self._user.returns_within(number + 1, _KEEP_MIN)):
            return
        rule = deciding(self._rules, self._subject, at)
        bounds = KeepAlive() if rule is None else rule.keep_alive
        for_ms = min(_KEEP_MIN * _MINUTE_MS, round(bounds.longest_s * 1000))
        assert self._watch is not None, "who was warned holds devices"
        try:
            self._watch = kept(self._watch, bounds, for_ms, "still at it")
        except BadRequest:
            return
        self._outcome.keeps += 1


def _sample(number: int, minute: Minute, at: datetime) -> Sample:
    return Sample(
        life="day",
        begin_ms=number * _MINUTE_MS,
        end_ms=(number + 1) * _MINUTE_MS,
        at=at,
        active=minute.active,
        quiet=_TOLD - minute.active - minute.unknown,
        gpu_peak=minute.peak,
        gpu_mean=minute.mean,
        held_bytes=minute.held_bytes,
        orphaned=minute.orphaned,
    )
