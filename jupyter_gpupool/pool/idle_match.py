"""For which claims a rule on idle claims is, and what a rule has to know of a claim for that."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from .errors import BadRequest
from .hours import Hours
from .ids import UserName
from .request import OnIdle


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWish:
    """What a claim's user would have done with it when it is idle.

    Attributes:
        action: None leaves it to the rule.
        after_s: After how long; None leaves it to the rule.
    """

    action: OnIdle | None = None
    after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What rules ask about a claim.

    Attributes:
        queues: Its queue and all above it.
        models: Of its devices.
        devices: What it holds, in thousandths of a device.
        may_hibernate: Its results can be kept. Not those of a claim whose worker is a kernel, nor
            while it has actors.
        may_shrink: It has more workers than its minimum.
    """

    user: UserName
    queues: tuple[str, ...]
    models: tuple[str, ...]
    priority: str
    devices: int
    may_hibernate: bool = True
    may_shrink: bool = False
    wish: OwnWish = OwnWish()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """For which claims a rule is; what is empty or None asks nothing.

    Attributes:
        queues: Any of these, or of those below them.
        models: Words of which one is in the model of one of its devices, in lower case.
        least, most: How much it holds, in thousandths of a device.

    Raises:
        BadRequest: If no claim can ever be meant.
    """

    queues: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    models: tuple[str, ...] = ()
    priorities: frozenset[str] = frozenset()
    least: int | None = None
    most: int | None = None
    hours: Hours | None = None

    def __post_init__(self) -> None:
        if self.least is not None and self.most is not None and self.least > self.most:
            raise BadRequest(
                f"No claim holds at least {self.least / 1000:g} and at most {self.most / 1000:g}.",
                field="gpus",
            )

    def fits(self, subject: Subject, at: datetime) -> bool:
        """Whether it is for this claim at this moment."""
        return (
            _meets(self.queues, subject.queues)
            and _meets(self.users, (subject.user,))
            and _meets(self.priorities, (subject.priority,))
            and (not self.models or _has_model(self.models, subject.models))
            and (self.least is None or subject.devices >= self.least)
            and (self.most is None or subject.devices <= self.most)
            and (self.hours is None or self.hours.hold_at(at))
        )

    def is_for_model(self, model: str) -> bool:
        """Whether it may be for a claim on a device of this model."""
        return not self.models or _has_model(self.models, (model,))

    def is_for_all_of(self, model: str) -> bool:
        """Whether it is for every claim on a device of this model, whatever else it is."""
        return self == Match(models=self.models) and self.is_for_model(model)


def _meets(asked: frozenset[str], found: Iterable[str]) -> bool:
    return not asked or not asked.isdisjoint(found)


def _has_model(words: Iterable[str], models: Iterable[str]) -> bool:
    return any(word in model.lower() for model in models for word in words)
