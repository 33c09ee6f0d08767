"""How much service a claim has attained, and when it steps to its next level.

Kept by `ServiceBooks` for each claim from pass to pass. Service is device-seconds held, and its
levels are coarse so that claims near each other do not take turns. Source: Gu et al., "Tiresias: A
GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, section 3.2 (Discretized 2D-LAS).
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_gpupool.pool.rules import Rules

from .amounts import WHOLE_DEVICE
from .ledger import Member

_ROUNDING = 1e-3
"""Device-seconds below a level's bound that count as reached: times are floating."""


@dataclass(slots=True, eq=False)
class Served:
    """A claim and the service it has attained.

    Attributes:
        attained_s: Device-seconds it has held in all, until `as_of_s`.
        level: How many of the levels it has passed.
        started_s: When it last began to hold devices.
        entry: The number of its newest entry in the line; older ones are void.
        moment: The number of its newest moment ahead; older ones are void.
        is_open: It is counted among those who may be asked to give.
    """

    member: Member
    attained_s: float
    as_of_s: float
    level: int
    started_s: float
    entry: int = 0
    moment: int = 0
    is_open: bool = False

    @property
    def top(self) -> int:
        """The number of its queue at the top of the tree."""
        return self.member.path[-1]

    @property
    def thousandths(self) -> int:
        """What it holds now."""
        return len(self.member.spots) * self.member.view.worker.thousandths

    def bring_to(self, now_s: float, levels: Sequence[float]) -> None:
        """Count what it has held until now."""
        self.attained_s += (now_s - self.as_of_s) * self.thousandths / WHOLE_DEVICE
        self.as_of_s = now_s
        self.level = level_of(self.attained_s, levels)

    def may_be_asked(self, now_s: float, rules: Rules) -> bool:
        """Whether it may be asked to give at all: what cannot hibernate keeps its place."""
        view = self.member.view
        if not self.member.spots or view.firm or not view.can_hibernate:
            return False
        return not self.level or now_s >= self.started_s + rules.least_stint_s

    def next_moment_s(self, now_s: float, rules: Rules) -> float | None:
        """When it steps to its next level or may first be asked; None if never."""
        if not self.member.spots:
            return None
        moments = list[float]()
        if self.level < len(rules.levels) and self.thousandths:
            lacking = rules.levels[self.level] - self.attained_s
            moments.append(now_s + lacking * WHOLE_DEVICE / self.thousandths)
        if now_s < self.started_s + rules.least_stint_s:
            moments.append(self.started_s + rules.least_stint_s)
        return min(moments, default=None)


def level_of(attained_s: float, levels: Sequence[float]) -> int:
    """How many levels so many device-seconds have passed."""
    return bisect_right(levels, attained_s + _ROUNDING)


def served_from(member: Member, now_s: float, rules: Rules) -> Served:
    """Read off a claim's view what it has attained."""
    view = member.view
    started_s = view.started_s if view.started_s is not None else now_s
    return Served(
        member, view.attained_s, now_s, level_of(view.attained_s, rules.levels), started_s
    )
