"""How much a claim's devices computed over a window that slides: what tells a busy loop from work.

The window is made of parts of equal length; it moves by one part at a time, so that it costs the
same however long it is. Only time of which the use is known is in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from jupyter_gpupool.pool.idle_rule import IdleRule, LeastUse

PARTS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What devices computed, in thousandths of a device times milliseconds.

    Attributes:
        part_ms: The length of a part.
        parts: Of the last parts that are over, oldest first.
        current, filled_ms: Of the part that is under way, and how much of it is over.
    """

    part_ms: int
    parts: tuple[int, ...] = ()
    current: int = 0
    filled_ms: int = 0

    @property
    def mean(self) -> int | None:
        """Over the window, in thousandths rounded down; None before a whole window is known."""
        return sum(self.parts) // (PARTS * self.part_ms) if len(self.parts) == PARTS else None

    def is_below(self, thousandths: int) -> bool:
        """Whether a whole window is known and less was computed in it."""
        whole = len(self.parts) == PARTS
        return whole and sum(self.parts) < thousandths * PARTS * self.part_ms


def part_ms(least: LeastUse) -> int:
    """The length of a part of the window that a rule asks about."""
    return round(least.over_s * 1000) // PARTS


def parts_of(rules: Iterable[IdleRule]) -> tuple[int, ...]:
    """The lengths of parts of all windows that a policy's rules ask about, each once."""
    asked = (rule.least_use for rule in rules if rule.least_use is not None)
    return tuple(dict.fromkeys(map(part_ms, asked)))


def used(use: Use, mean: int | None, length_ms: int) -> Use:
    """The use after one more sample; one that does not know it changes nothing."""
    while mean is not None and length_ms:
        step_ms = min(length_ms, use.part_ms - use.filled_ms)
        length_ms -= step_ms
        current, filled_ms = use.current + mean * step_ms, use.filled_ms + step_ms
        if filled_ms == use.part_ms:
            parts = (*use.parts, current)[-PARTS:]
            use = Use(part_ms=use.part_ms, parts=parts)
        else:
            use = replace(use, current=current, filled_ms=filled_ms)
    return use
