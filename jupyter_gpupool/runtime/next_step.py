"""What a scheduler does next about its claim's results, from its orders and from what is. Pure.

Called by `hibernation` whenever one of both has changed.
"""

from dataclasses import dataclass
from enum import Enum, auto

from jupyter_gpupool.protocol.keeping import KeepPhase, Wish


class Step(Enum):
    """One thing to do."""

    SURVEY = auto()
    """Find out what cannot be kept."""
    HIBERNATE = auto()
    """Move everything to the holder, then let the workers go."""
    RESUME = auto()
    """Move everything back, then let the holder go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that matters for it.

    Attributes:
        surveyed: Whether what cannot be kept is known for this very wish.
        failed: Whether this wish failed already, with this very holder.
        has_holder: Whether one is registered.
        has_workers: Whether a worker could take results.
        held: Results that are with the holder.
        left_behind: Whether these stay there, for no worker could read them.
    """

    wish: Wish
    phase: KeepPhase
    surveyed: bool
    failed: bool
    has_holder: bool
    has_workers: bool
    held: int
    left_behind: bool = False


def next_step(now: Standing) -> Step | None:
    """The step to take, or None to wait for news."""
    if now.wish is Wish.HIBERNATED:
        return _towards_sleep(now)
    if now.left_behind:
        if not now.held:
            return Step.RESUME  # nobody wants them any more: the holder may go
    elif now.held or now.phase in (KeepPhase.HIBERNATED, KeepPhase.RESUMING):
        return Step.RESUME if now.has_workers and not now.failed else None
    return Step.SURVEY if now.wish is Wish.SURVEYED and not now.surveyed else None


def _towards_sleep(now: Standing) -> Step | None:
    if now.phase in (KeepPhase.HIBERNATED, KeepPhase.REFUSED, KeepPhase.LOST) or now.failed:
        return None
    if not now.surveyed:
        return Step.SURVEY
    return Step.HIBERNATE if now.has_holder else None
