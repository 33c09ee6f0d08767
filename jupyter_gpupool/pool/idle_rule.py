"""What the policy says of claims that nobody uses: a rule, and what it may be that it acts on.

Read from the admin's document by `protocol.idle_policy`; the first rule that fits a claim decides
(`scheduling.idle`). A rule that contradicts itself cannot be built.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .errors import BadRequest
from .idle_match import Match, OwnWish, Subject
from .request import OnIdle
from .signals import WHOLE_USE, Signal

LEAST_NOTICE_S: Final = 60.0
"""Nobody has less from a warning to what it warns of."""
LEAST_USE_WINDOW_S: Final = 3600.0
DEFAULT_SIGNALS: Final = frozenset(Signal) - {Signal.CLIENTS}
"""A client that is connected says something every few seconds and need not do anything."""
FOR_ALL: Final = Match()
"""Fits every claim at any time."""
_MINUTE_S: Final = 60.0
_HOUR_S: Final = 3600.0


class Ground(StrEnum):
    """Why something is taken."""

    IDLE = "idle"
    """Every signal of the rule has been quiet."""
    ORPHANED = "orphaned"
    """All who used the claim are gone for good, and nothing of it runs any more."""
    LITTLE_USED = "little-used"
    """Its devices computed too little over a window, however busy it looked."""
    HELD_LONG = "held-long"
    """It has held devices for as long as it may."""


class Otherwise(StrEnum):
    """What becomes of an idle claim that should hibernate and cannot."""

    LEAVE = "leave"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """When a claim is warned, and when something is taken from it.

    Attributes:
        warn_s: For so long the ground has to last before the claim is warned.
        after_s: And for so long before the action.

    Raises:
        BadRequest: If a warning would come too late to be of use.
    """

    warn_s: float = 15 * _MINUTE_S
    after_s: float = 20 * _MINUTE_S
    action: OnIdle = OnIdle.HIBERNATE

    def __post_init__(self) -> None:
        if self.warn_s < 0:
            raise BadRequest("Its notice is longer than all of its time.", field="notice")
        if self.notice_s < LEAST_NOTICE_S:
            raise BadRequest(
                "Its warning comes less than a minute before its action.",
                field="warn",
                hint="Let warn be at least a minute shorter than after.",
            )

    @property
    def notice_s(self) -> float:
        """From the warning to the action, to the millisecond."""
        return round(self.after_s - self.warn_s, 3)


ORPHANED_TERMS: Final = Terms(warn_s=0.0, after_s=2 * _MINUTE_S)
"""Of an orphan where the policy says nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastUse:
    """How much a claim's devices have to compute: what a busy loop does not do.

    Attributes:
        below: Taken if its devices' mean utilisation, in thousandths, is less than this...
        over_s: ...over the last time of this length in which it is known.

    Raises:
        BadRequest: If no use could be too little, or the window is too short to judge anybody.
    """

    below: int
    over_s: float
    notice_s: float = 15 * _MINUTE_S
    action: OnIdle = OnIdle.HIBERNATE

    def __post_init__(self) -> None:
        if not 0 < self.below <= WHOLE_USE:
            raise BadRequest("No use can be below that.", field="below")
        if self.over_s < LEAST_USE_WINDOW_S:
            raise BadRequest("A window of use has an hour or more.", field="over")
        if self.notice_s < LEAST_NOTICE_S:
            raise BadRequest("Its notice is shorter than a minute.", field="notice")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """Within which bounds users may postpone what is taken as idle.

    Attributes:
        longest_s: A single time.
        per_day_s: Within any 24 hours.
        reason: Whether they have to say why.

    Raises:
        BadRequest: If a day has no room for a single time.
    """

    longest_s: float = 2 * _HOUR_S
    per_day_s: float = 4 * _HOUR_S
    reason: bool = False

    def __post_init__(self) -> None:
        if self.longest_s > self.per_day_s:
            raise BadRequest(
                "A single postponement is longer than all of a day.",
                field="longest",
                hint="Raise per_day or lower longest.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Within which bounds users choose their own terms.

    Attributes:
        actions: What they may choose besides the rule's own.
        shortest_s, longest_s: After how long at least and at most.

    Raises:
        BadRequest: If nothing lies within the bounds.
    """

    actions: frozenset[OnIdle] = frozenset()
    shortest_s: float
    longest_s: float

    def __post_init__(self) -> None:
        if self.shortest_s > self.longest_s:
            raise BadRequest("Its least time is above its greatest.", field="after")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRule:
    """One rule of the policy on claims that nobody uses.

    Attributes:
        signals: All of them have to be quiet.
        gpu_below: The utilisation, in thousandths, below which the GPU is quiet.
        idle: None if idleness alone takes nothing.
        orphaned: None if it does not matter that nobody is left.
        least_use: None if any use will do.
        longest: How long a claim may hold devices at all; nobody can postpone it. Else None.
        only_when_wanted: Nothing is taken while nobody waits for it.
        otherwise: What becomes of a claim that should hibernate and cannot.
        choice: None if users have none.

    Raises:
        BadRequest: If it contradicts itself.
    """

    name: str
    match: Match = FOR_ALL
    signals: frozenset[Signal] = DEFAULT_SIGNALS
    gpu_below: int = 50
    idle: Terms | None = Terms()
    orphaned: Terms | None = ORPHANED_TERMS
    least_use: LeastUse | None = None
    longest: Terms | None = None
    keep_alive: KeepAlive = KeepAlive()
    only_when_wanted: bool = False
    otherwise: Otherwise = Otherwise.LEAVE
    choice: Choice | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise BadRequest("It has no name, and people are told by which rule.", field="name")
        if not self.signals & {Signal.TASKS, Signal.GPU, Signal.KERNEL}:
            # Nobody's work shows in the others alone.
            raise BadRequest(
                "It asks about neither tasks, gpu nor kernel, and so would take busy claims.",
                field="signals",
            )
        if not 0 < self.gpu_below <= WHOLE_USE:
            raise BadRequest("No use can be below that.", field="gpu_below")
        self._check_choice()

    def _check_choice(self) -> None:
        if self.choice is None:
            return
        if self.idle is None:
            raise BadRequest("It lets users choose when it never acts.", field="choice")
        if not self.choice.shortest_s <= self.idle.after_s <= self.choice.longest_s:
            raise BadRequest(
                "Its own time lies outside the bounds it gives to users.", field="choice.after"
            )
        if self.choice.shortest_s < LEAST_NOTICE_S:
            raise BadRequest("Users could choose less than a minute.", field="choice.after")

    def idle_terms(self, wish: OwnWish) -> Terms | None:
        """What holds for a claim whose user has a wish of their own, as far as the bounds go.

        The notice is the rule's own, or all there is if the user wants it sooner.
        """
        if self.idle is None or self.choice is None:
            return self.idle
        after_s = self.idle.after_s if wish.after_s is None else wish.after_s
        after_s = min(max(after_s, self.choice.shortest_s), self.choice.longest_s)
        return Terms(
            warn_s=max(0.0, after_s - self.idle.notice_s),
            after_s=after_s,
            action=self._action(self.idle.action, wish),
        )

    def _action(self, own: OnIdle, wish: OwnWish) -> OnIdle:
        allowed = frozenset() if self.choice is None else self.choice.actions
        return wish.action if wish.action is not None and wish.action in allowed else own

    def can_do(self, action: OnIdle, subject: Subject) -> OnIdle | None:
        """What an action comes to with a claim; None if it is left alone."""
        if action is OnIdle.SHRINK:
            return action if subject.may_shrink else None
        if action is OnIdle.RELEASE or subject.may_hibernate:
            return action
        return OnIdle.RELEASE if self.otherwise is Otherwise.RELEASE else None


def check_rules(rules: Iterable[IdleRule]) -> None:
    """Refuse rules of which one cannot be told from another, or can never decide.

    Raises:
        BadRequest: Its field is the number of the rule, from 0, and the key within it.
    """
    names: set[str] = set()
    for_all = ""
    for number, rule in enumerate(rules):
        if rule.name in names:
            raise BadRequest(f'Two rules are named "{rule.name}".', field=f"{number}.name")
        if for_all:
            raise BadRequest(
                f'Rule "{rule.name}" never decides, for "{for_all}" before it fits every claim.',
                field=f"{number}.name",
                hint="Move it up.",
            )
        names.add(rule.name)
        for_all = rule.name if rule.match == FOR_ALL else ""
