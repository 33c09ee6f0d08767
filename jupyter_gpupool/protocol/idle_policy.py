"""The policy's part on claims that nobody uses, as an admin writes it: `[[idle.rules]]`.

Read key by key into `pool.idle_rule`, whose own checks are told with the key they are about.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.hours import DAY_MIN, Day, Hours
from jupyter_gpupool.pool.idle_match import Match
from jupyter_gpupool.pool.idle_rule import (
    DEFAULT_SIGNALS,
    LEAST_NOTICE_S,
    Choice,
    IdleRule,
    KeepAlive,
    LeastUse,
    Otherwise,
    Terms,
    check_rules,
)
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Signal

from .bodies import Body, Words
from .policy_values import Amount, above_zero, seconds, thousandths, under

_Part = Annotated[float, Field(gt=0, le=1)]
_Names = tuple[Words, ...]
_HOURS = re.compile(r"^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)$", re.ASCII)
NEVER = "never"
"""A time that does not come."""


class SizeEntry(Body):
    """How much a claim holds: `{ min = 2, max = 8 }`, in devices."""

    min: Amount | None = None
    max: Amount | None = None


class MatchEntry(Body):
    """For which claims a rule is; what is left out asks nothing.

    Attributes:
        queues: Any of these, or of the queues below them.
        models: Words of a device's model, in any case.
        hours: Such as "20:00-06:00".
        days: On which these hours begin.
        zone: The IANA name of their time zone, such as "Europe/Berlin".
    """

    queues: _Names = ()
    users: _Names = ()
    models: _Names = ()
    priorities: _Names = ()
    gpus: SizeEntry = Field(default_factory=SizeEntry)
    hours: Annotated[Words, Field(json_schema_extra={"pattern": _HOURS.pattern})] | None = None
    days: tuple[Day, ...] | None = None
    zone: Words | None = None

    def to_match(self) -> Match:
        """The pool's own."""
        return Match(
            queues=frozenset(self.queues),
            users=frozenset(self.users),
            models=tuple(model.lower() for model in self.models),
            priorities=frozenset(self.priorities),
            least=thousandths(self.gpus.min),
            most=thousandths(self.gpus.max),
            hours=self._hours(),
        )

    def _hours(self) -> Hours | None:
        if self.hours is None and self.days is None:
            if self.zone is not None:
                raise BadRequest("It is for neither hours nor days.", field="zone")
            return None
        if self.zone is None:
            raise BadRequest(
                "Hours and days need a time zone.", field="zone", hint='Such as "Europe/Berlin".'
            )
        begin, end = (0, DAY_MIN) if self.hours is None else _minutes(self.hours)
        days = frozenset(Day if self.days is None else self.days)
        return Hours(zone=_zone(self.zone), begin_min=begin, end_min=end, days=days)


class OrphanEntry(Body):
    """What becomes of a claim whose kernels and clients are gone for good."""

    after: Words = "2min"
    action: OnIdle = OnIdle.HIBERNATE

    def to_terms(self) -> Terms | None:
        """The pool's own; None if nothing becomes of it."""
        if self.after == NEVER:
            return None
        after_s = _notice(self.after, "after")
        return Terms(warn_s=0.0, after_s=after_s, action=self.action)


class LeastUseEntry(Body):
    """How much a claim's devices have to compute over a window: the rule against busy loops.

    Attributes:
        below: Of all their time, 0 to 1.
    """

    below: _Part
    over: Words
    notice: Words = "15min"
    action: OnIdle = OnIdle.HIBERNATE

    def to_least_use(self) -> LeastUse:
        """The pool's own."""
        return LeastUse(
            below=round(self.below * 1000),
            over_s=above_zero(self.over, "over"),
            notice_s=_notice(self.notice, "notice"),
            action=self.action,
        )


class LongestEntry(Body):
    """How long a claim may hold devices at all, however busy it is."""

    after: Words
    notice: Words = "1h"
    action: OnIdle = OnIdle.HIBERNATE

    def to_terms(self) -> Terms:
        """The pool's own."""
        after_s = above_zero(self.after, "after")
        warn_s = after_s - _notice(self.notice, "notice")
        return Terms(warn_s=warn_s, after_s=after_s, action=self.action)


class KeepAliveEntry(Body):
    """Within which bounds users may postpone what is taken as idle.

    Attributes:
        longest: A single time; "0" is never.
        per_day: Within any 24 hours.
        reason: Whether they have to say why.
    """

    longest: Words = "2h"
    per_day: Words = "4h"
    reason: bool = False

    def to_keep_alive(self) -> KeepAlive:
        """The pool's own."""
        return KeepAlive(
            longest_s=seconds(self.longest, "longest"),
            per_day_s=seconds(self.per_day, "per_day"),
            reason=self.reason,
        )


class ChoiceEntry(Body):
    """Within which bounds users choose their own `on_idle`.

    Attributes:
        actions: What they may choose besides the rule's own.
        after: The least and the greatest time.
    """

    actions: tuple[OnIdle, ...] = ()
    after: tuple[Words, Words]

    def to_choice(self) -> Choice:
        """The pool's own."""
        shortest_s, longest_s = (above_zero(text, "after") for text in self.after)
        actions = frozenset(self.actions)
        return Choice(actions=actions, shortest_s=shortest_s, longest_s=longest_s)


class IdleRuleEntry(Body):
    """A rule: `[[idle.rules]]`. The first that is for a claim decides.

    Attributes:
        signals: All of them have to be quiet.
        gpu_below: The use, of 0 to 1, below which the signal "gpu" is quiet.
        warn: When its user is warned: after so long without use.
        after: When the action comes; "never" if idleness alone takes nothing.
        only_when_wanted: Nothing is taken while nobody waits for it.
        otherwise: What becomes of a claim that should hibernate and cannot.
        choice: Bounds within which users choose for themselves.
    """

    name: Words
    match: MatchEntry = Field(default_factory=MatchEntry)
    signals: tuple[Signal, ...] = tuple(s for s in Signal if s in DEFAULT_SIGNALS)
    gpu_below: _Part = 0.05
    warn: Words | None = None
    after: Words = "20min"
    action: OnIdle | None = None
    orphan: OrphanEntry = Field(default_factory=OrphanEntry)
    least_use: LeastUseEntry | None = None
    longest: LongestEntry | None = None
    keep_alive: KeepAliveEntry = Field(default_factory=KeepAliveEntry)
    only_when_wanted: bool = False
    otherwise: Literal["leave", "release"] = "leave"
    choice: ChoiceEntry | None = None

    def to_rule(self) -> IdleRule:
        """The pool's own.

        Raises:
            BadRequest: If it contradicts itself; the field is the key below the rule.
        """
        with under("match"):
            match = self.match.to_match()
        with under("orphan"):
            orphaned = self.orphan.to_terms()
        return IdleRule(
            name=self.name,
            match=match,
            signals=frozenset(self.signals),
            gpu_below=round(self.gpu_below * 1000),
            idle=self._idle_terms(),
            orphaned=orphaned,
            least_use=self._least_use(),
            longest=self._longest(),
            keep_alive=self._keep_alive(),
            only_when_wanted=self.only_when_wanted,
            otherwise=Otherwise(self.otherwise),
            choice=self._choice(),
        )

    def _idle_terms(self) -> Terms | None:
        """By default the notice is five minutes, as from the fifteenth to the twentieth."""
        if self.after == NEVER:
            for key, said in (("warn", self.warn), ("action", self.action)):
                if said is not None:
                    raise BadRequest("The rule never acts on idleness.", field=key)
            return None
        after_s = above_zero(self.after, "after")
        warn_s = after_s - 300 if self.warn is None else seconds(self.warn, "warn")
        if warn_s < 0:
            raise BadRequest("Less than five minutes need a warn of their own.", field="after")
        return Terms(warn_s=warn_s, after_s=after_s, action=self.action or OnIdle.HIBERNATE)

    def _least_use(self) -> LeastUse | None:
        with under("least_use"):
            return None if self.least_use is None else self.least_use.to_least_use()

    def _longest(self) -> Terms | None:
        with under("longest"):
            return None if self.longest is None else self.longest.to_terms()

    def _keep_alive(self) -> KeepAlive:
        with under("keep_alive"):
            return self.keep_alive.to_keep_alive()

    def _choice(self) -> Choice | None:
        with under("choice"):
            return None if self.choice is None else self.choice.to_choice()


class IdleEntry(Body):
    """`[idle]`: what becomes of claims that nobody uses. Without a rule nothing does."""

    rules: tuple[IdleRuleEntry, ...] = ()

    def to_rules(self) -> tuple[IdleRule, ...]:
        """The pool's own.

        Raises:
            BadRequest: If one contradicts itself, or another.
        """
        rules = []
        for number, entry in enumerate(self.rules):
            with under(f"idle.rules.{number}"):
                rules.append(entry.to_rule())
        with under("idle.rules"):
            check_rules(rules)
        return tuple(rules)

    def refusals(self) -> Iterator[BadRequest]:
        """What is wrong with rules by themselves, one for each; if nothing is, with them all."""
        is_sound = True
        for number, entry in enumerate(self.rules):
            try:
                with under(f"idle.rules.{number}"):
                    entry.to_rule()
            except BadRequest as error:
                is_sound = False
                yield error
        if is_sound:
            try:
                self.to_rules()
            except BadRequest as error:
                yield error


def _notice(text: str, key: str) -> float:
    """A time in which somebody has to answer."""
    notice_s = above_zero(text, key)
    if notice_s < LEAST_NOTICE_S:
        raise BadRequest("Nobody answers in less than a minute.", field=key)
    return notice_s


def _minutes(text: str) -> tuple[int, int]:
    """Beginning and end of hours, in minutes after midnight."""
    match = _HOURS.fullmatch(text)
    if match is None:
        raise BadRequest(
            f'"{text}" is no time of a day.', field="hours", hint='Write for example "20:00-06:00".'
        )
    begin_h, begin_min, end_h, end_min = map(int, match.groups())
    return begin_h * 60 + begin_min, end_h * 60 + end_min


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest(
            f'There is no time zone "{name}".', field="zone", hint='Write for example "Asia/Tokyo".'
        ) from error
