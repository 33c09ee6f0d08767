"""The claims in the books of a pass: what each is, where its workers are, what it still lacks.

Made and changed by `ledger`; every step of a pass reads them.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from .amounts import BASE_KINDS, Amount, Kinds
from .inventory import Spot
from .pool_view import ClaimView
from .shape import WorkerShape


class Turn(Enum):
    """What has happened to a claim in this pass: who was served or moved gives nothing in it."""

    NONE = auto()
    SERVED = auto()
    GAVE = auto()
    MOVED = auto()


@dataclass(slots=True, eq=False)
class Member:
    """A claim in the books: what it is, and where its workers are now.

    Attributes:
        leaf: The number of its queue.
        path: The numbers of its queue and of those above it.
        each: What one of its workers counts for.
        counts: The same as pairs of a kind and an amount, for the kinds of which it is any.
        sharer: With whom it may share a device.
        alike: The number of all whose workers fit where its own do: they have its shape and, if
            that is a part of a device, its sharer.
        spots: Where its workers are, in the order of their grants.
        promised: Where workers go as soon as devices there are freed.
        has: Workers it holds or is promised.
        needs: Workers that it lacks of its minimum, else 1 if it would take another.
    """

    view: ClaimView
    leaf: int
    path: tuple[int, ...]
    each: Amount
    counts: tuple[tuple[int, int], ...]
    sharer: str
    alike: int
    spots: list[Spot] = field(default_factory=list)
    promised: list[Spot] = field(default_factory=list)
    turn: Turn = Turn.NONE
    has: int = 0
    needs: int = 0

    def __post_init__(self) -> None:
        self.recount()

    def recount(self) -> None:
        """Count anew after a change: a pass asks some hundred thousand times what it needs."""
        has = self.has = len(self.spots) + len(self.promised)
        lacking = self.view.minimum - has
        self.needs = lacking if lacking > 0 else int(has < self.view.maximum)

    @property
    def surplus(self) -> int:
        """Workers beyond its minimum."""
        return max(0, len(self.spots) - self.view.minimum)


def amount_of(worker: WorkerShape, kinds: Kinds) -> Amount:
    """What one worker counts for; a kind of one model counts if the claim names that model."""
    base = (worker.thousandths, worker.cpu, worker.memory_bytes)
    models = (kind.partition(":")[2] for kind in kinds[len(BASE_KINDS) :])
    named = (worker.thousandths if m and m in worker.model else 0 for m in models)
    return (*base[: len(kinds)], *named)
