"""What passes saw of each thing the last time, so that the next one looks at what is new alone.

Kept by the service from pass to pass. A look at a unit of work counts for the books, too: whatever
becomes of the unit, all that it changes is looked at once more.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName
from jupyter_gpupool.scheduling.queues import QueueTree
from jupyter_gpupool.scheduling.reservations import Booking, tree_at

from .books import Books
from .kept_pool import KeptPool
from .stirred import Stirred

if TYPE_CHECKING:
    from jupyter_gpupool.scheduling.pool_view import ClaimView
    from jupyter_gpupool.scheduling.shape import HostShape

    from .environments import Barring
    from .in_force import PolicyInForce
    from .standing import View

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Seen(Generic[K, V]):
    """Things by key as they were seen last, in the order of the books.

    One of the books that no pass sees just now keeps its place among the others.
    """

    def __init__(self) -> None:
        self._found: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """The thing, if passes see it."""
        return self._found.get(key)

    def keep(self, key: K, found: V | None) -> V | None:
        """Let a thing be as it is seen now, and give it: the same object if it is as before."""
        before = self._found.get(key)
        if found is not None and found == before:
            return before
        self._found[key] = found
        return found

    def forget(self, key: K) -> None:
        """It is in the books no more."""
        self._found.pop(key, None)

    def begin_anew(self, keys: Iterable[K]) -> None:
        """Let there be these, whoever is new after all others."""
        there = dict.fromkeys(keys)
        known = {key: found for key, found in self._found.items() if key in there}
        self._found = known | {key: None for key in there if key not in known}

    def all(self) -> tuple[V, ...]:
        """All that passes see."""
        return tuple([found for found in self._found.values() if found is not None])


class Places:
    """Where the schedulers of claims are, and how many each host holds."""

    def __init__(self) -> None:
        self._of: dict[ClaimId, HostId] = {}
        self.held: Counter[HostId] = Counter()

    def put(self, claim_id: ClaimId, host_id: HostId | None) -> tuple[HostId, ...]:
        """Let a claim's scheduler be there, or nowhere; the hosts that hold more or fewer now."""
        before = self._of.pop(claim_id, None)
        if host_id is not None:
            self._of[claim_id] = host_id
            self.held[host_id] += 1
        if before is not None:
            self.held[before] -= 1
        return () if before == host_id else tuple(filter(None, (before, host_id)))


class Sight:
    """What passes remember.

    Attributes:
        kept: The books of the last pass.
        varying: Claims of which time, or a lease of another, may change what is seen.
        awaiting: Claims for which others still have to give something back.
        barring: Which hosts can run which claim, as long as no host offers anything else.
    """

    def __init__(self) -> None:
        self.kept = KeptPool()
        self.claims: Seen[ClaimId, ClaimView] = Seen()
        self.hosts: Seen[HostId, HostShape] = Seen()
        self.places = Places()
        self.varying: dict[ClaimId, None] = {}
        self.awaiting: frozenset[ClaimId] = frozenset()
        self.barring: Barring | None = None
        self._seen: tuple[Books, PolicyInForce, int] | None = None
        # What was looked at above the books, where it may not stay.
        self._unsettled = Stirred()
        self._tree: tuple[QueueTree, frozenset[tuple[str, UserName]], QueueTree] | None = None
        self._raised: tuple[QueueTree, tuple[Booking, ...], QueueTree] | None = None

    @contextmanager
    def look(self, view: "View") -> "Iterator[Stirred | None]":
        """Gives what to look at anew; None is everything, which also follows a look that failed."""
        if isinstance(view, Books):
            books, above = view, Stirred()
        else:
            books, above = view.laid_over()
        seen, self._seen = self._seen, None
        is_same = seen is not None and seen[0] is books and seen[1] is view.policy
        news = books.journal.since(seen[2]) if seen is not None and is_same else None
        if news is not None:
            news.add(self._unsettled)
            news.add(above)
        yield news
        self._seen, self._unsettled = (books, view.policy, books.journal.at), above

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
