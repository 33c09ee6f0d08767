"""What passes saw of each thing the last time, so that the next one looks at what is new alone.

Kept by the service from pass to pass. What is in the books is never changed, only replaced: a thing
made of the very same objects is the same.
"""

from collections.abc import Callable, Hashable
from operator import is_
from typing import TYPE_CHECKING, Generic, TypeVar

from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName
from jupyter_gpupool.scheduling.queues import QueueTree
from jupyter_gpupool.scheduling.reservations import Booking, tree_at

from .kept_pool import KeptPool

if TYPE_CHECKING:
    from jupyter_gpupool.scheduling.pool_view import ClaimView
    from jupyter_gpupool.scheduling.shape import HostShape

    from .environments import Barred

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Things by key, with what they were made of. What a round did not ask for is forgotten."""

    def __init__(self) -> None:
        self._before: dict[K, tuple[tuple[object, ...], V]] = {}
        self._now: dict[K, tuple[tuple[object, ...], V]] = {}

    def next_round(self) -> None:
        """Begin another round of looking at everything."""
        self._before, self._now = self._now, {}

    def of(self, key: K, parts: tuple[object, ...], make: Callable[[], V]) -> V:
        """The thing as it was made before, if every part of it is the same object."""
        known = self._before.get(key)
        if known is None or not _are_same(known[0], parts):
            known = (parts, make())
        self._now[key] = known
        return known[1]


class Sight:
    """What passes remember.

    Attributes:
        barred: Each set of barred hosts once, so that equal ones are the same object.
        kept: The books of the last pass.
    """

    def __init__(self) -> None:
        self.kept = KeptPool()
        self.claims: Remembered[ClaimId, ClaimView] = Remembered()
        self.hosts: Remembered[HostId, HostShape] = Remembered()
        self._tree: tuple[QueueTree, frozenset[tuple[str, UserName]], QueueTree] | None = None
        self._raised: tuple[QueueTree, tuple[Booking, ...], QueueTree] | None = None
        self.barred: dict[Barred, Barred] = {}

    def next_round(self) -> None:
        """Begin another look at the books."""
        self.claims.next_round()
        self.hosts.next_round()

    def raised(self, policys: QueueTree, bookings: tuple[Booking, ...], now_s: float) -> QueueTree:
        """The policy's tree with guarantees raised by open bookings, made anew only for others."""
        are_open = tuple(booking for booking in bookings if booking.is_open(now_s))
        known = self._raised
        if known is None or known[0] is not policys or known[1] != are_open:
            self._raised = known = (policys, are_open, tree_at(policys, are_open, now_s))
        return known[2]

    def tree(
        self,
        policys: QueueTree,
        users: frozenset[tuple[str, UserName]],
        make: Callable[[], QueueTree],
    ) -> QueueTree:
        """The policy's tree with these users, made anew only for others."""
        known = self._tree
        if known is None or known[0] is not policys or known[1] != users:
            self._tree = known = (policys, users, make())
        return known[2]


def _are_same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))
