"""Who is asked first to give back: the queue furthest over its share, and in it the youngest.

Queues are compared by the same key as for service, the other way round, with all that was asked
before taken off. What the books say of each queue is worked out once and kept until it changes.
"""

from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING

from .amounts import is_within
from .ledger import Ledger, Member
from .making_room import Room
from .most_given import MostGiven
from .pieces import Piece, asked_first, pieces_of
from .queue_order import Key, key_of

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId

Children = Callable[[int], Iterable[int]]
"""The queues below one that may be asked, -1 being above all."""


class Holders:
    """The claims that hold something, by queue, for all searches of a pass or of many.

    Attributes:
        members: Those that may be taken at all, by the number of their queue.
        held: What each queue holds before the search that is going on.
        unfinished: Somebody was not searched for, for the pass has found enough.
        queues: Those in which, or below which, anything may be taken, with the number of claims.
        most_given: What could be taken of which kind at the most.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.members: dict[int, dict[ClaimId, Member]] = {}
        self.held = [tuple(held) for held in ledger.held]
        self.queues: dict[int, int] = {}
        self._pieces: dict[int, list[Piece]] = {}
        self._keys: dict[int, Key] = {}
        self._lowest: dict[int, float] = {}
        self._owing: dict[tuple[int, bool], tuple[int, ...]] = {}
        self._searches_left = ledger.rules.most_searches
        self._in_vain: dict[Hashable, int] = {}
        self.unfinished = False
        self.most_given = MostGiven(ledger, self.members)
        self._in_order: dict[int, list[tuple[Key, int]]] = {}
        self._enlist_all()

    def _enlist_all(self) -> None:
        for member in self.ledger.members.values():
            if member.spots and not member.view.firm:
                self.members.setdefault(member.leaf, {})[member.view.id] = member
        for leaf, members in self.members.items():
            for queue in self.ledger.path_of(leaf):
                self.queues[queue] = self.queues.get(queue, 0) + len(members)

    def _enlist(self, member: Member) -> None:
        """Count a claim among its queue's if it holds something that may be taken, else do not."""
        here, may_give = self.members.get(member.leaf, {}), bool(member.spots)
        if may_give == (member.view.id in here) or member.view.firm:
            return
        if may_give:
            self.members.setdefault(member.leaf, {})[member.view.id] = member
        else:
            del here[member.view.id]
        for queue in member.path:
            self.queues[queue] = self.queues.get(queue, 0) + (1 if may_give else -1)
            if not self.queues[queue]:
                del self.queues[queue]
        if not here and not may_give:
            del self.members[member.leaf]

    def begin(self, searches: int, *, anew: bool) -> None:
        """Let a pass begin that may find room so often; `anew` if anything has changed."""
        self._searches_left, self.unfinished = searches, False
        if anew:
            self._in_vain.clear()

    def pieces(self, leaf: int) -> list[Piece]:
        """What the claims of a queue can give, whoever is asked first first."""
        found = self._pieces.get(leaf)
        if found is None:
            members = self.members.get(leaf, {})
            given = (piece for member in members.values() for piece in pieces_of(member))
            found = self._pieces[leaf] = sorted(given, key=asked_first)
        return found

    def key(self, queue: int) -> Key:
        """Where a queue stands by what it holds."""
        found = self._keys.get(queue)
        if found is None:
            held = self.held[queue]
            found = self._keys[queue] = key_of(self.ledger, queue, held, held, 0)
        return found

    def owing(self, queue: int, *, beyond_guarantee: bool) -> tuple[int, ...]:
        """The children of a queue that hold more than their share, or more than their guarantee."""
        key = (queue, beyond_guarantee)
        found = self._owing.get(key)
        if found is None:
            found = self._owing[key] = tuple(self._owe(queue, beyond_guarantee=beyond_guarantee))
        return found

    def _owe(self, queue: int, *, beyond_guarantee: bool) -> Iterator[int]:
        ledger = self.ledger
        for child in self.below(queue):
            held = self.held[child]
            is_over = not is_within(held, ledger.allowed[child])
            if is_over or (beyond_guarantee and not is_within(held, ledger.guarantee[child])):
                yield child

    def lowest_priority(self, leaf: int) -> float:
        """The lowest priority of those of a queue that may be taken; infinite if there are none."""
        found = self._lowest.get(leaf)
        if found is None:
            members = self.members.get(leaf, {}).values()
            found = self._lowest[leaf] = min((m.view.priority for m in members), default=inf)
        return found

    def may_search(self, kind: Hashable, count: int) -> bool:
        """Whether to look for room for so many workers of a kind.

        Not if fewer were looked for in vain in this pass, nor if it has found enough. What is
        looked for in vain counts for nothing: else it would keep whoever comes later from its turn.
        """
        if count >= self._in_vain.get(kind, count + 1):
            return False
        if not self._searches_left:
            self.unfinished = True
            return False
        return True

    def found(self, kind: Hashable, count: int, room: Room | None) -> Room | None:
        """Remember what a search came to, and give it back."""
        if room is None:
            self._in_vain[kind] = count
        else:
            self._searches_left -= 1
        return room

    def changed(self, member: Member) -> None:
        """Forget what was worked out of a claim's queues."""
        self._enlist(member)
        self.most_given.forget(member.path)
        self._pieces.pop(member.leaf, None)
        self._lowest.pop(member.leaf, None)
        for queue in member.path:
            self.share_changed(queue)
            self.held[queue] = tuple(self.ledger.held[queue])

    def share_changed(self, queue: int) -> None:
        """Forget where a queue stands."""
        self._keys.pop(queue, None)
        self._in_order.pop(self.ledger.parent[queue], None)
        self._owing.pop((self.ledger.parent[queue], True), None)
        self._owing.pop((self.ledger.parent[queue], False), None)

    def in_order(self, queue: int) -> list[tuple[Key, int]]:
        """All queues below one in which anything is held, by where they stand."""
        found = self._in_order.get(queue)
        if found is None:
            below = ((self.key(child), child) for child in self.below(queue))
            found = self._in_order[queue] = sorted(below)
        return found

    def below(self, queue: int) -> Iterator[int]:
        """All queues below one in which anything is held."""
        return (child for child in self.ledger.children[queue] if child in self.queues)


def asked_in_turn(holders: Holders, below: Children) -> Iterator[Piece]:
    """Give the pieces of all queues that may be asked, in the order in which they are asked."""
    return iter(_Asking(holders, below))


class _Asking:
    """One search's walk down the tree, again and again, to the queue that is asked next."""

    def __init__(self, holders: Holders, below: Children) -> None:
        self._holders, self._ledger, self._below = holders, holders.ledger, below
        self._off: dict[int, list[int]] = {}
        self._given: dict[int, int] = {}
        # By queue, those below it that have something left, who is asked next last.
        self._open: dict[int, list[tuple[Key, int]]] = {}
        self._mark = self._ledger.mark()

    def __iter__(self) -> Iterator[Piece]:
        while True:
            self._heed_changes()
            path = self._path()
            if not path:
                return
            queue = path[-1]
            pieces = self._holders.pieces(queue) if queue in self._holders.members else []
            at = self._given.get(queue, 0)
            if at < len(pieces):
                self._given[queue] = at + 1
                self._take_off(pieces[at])
                self._reenter(path)
                yield pieces[at]
            else:
                self._open[path[-2] if len(path) > 1 else -1].pop()

    def _heed_changes(self) -> None:
        """What was chosen for one worker changes where queues stand when the next is looked for."""
        if self._ledger.mark() != self._mark:
            self._mark = self._ledger.mark()
            for queue, entries in self._open.items():
                self._open[queue] = sorted((self._standing(child), child) for _, child in entries)

    def _path(self) -> list[int]:
        """The queues from the top down to the one that is asked next; none if nobody is left."""
        path, queue = list[int](), -1
        while queue not in self._holders.members:
            entries = self._open.get(queue)
            if entries is None:
                # Nothing was asked for below it so far.
                below = set(self._below(queue))
                in_order = self._holders.in_order(queue)
                entries = self._open[queue] = [entry for entry in in_order if entry[1] in below]
            if not entries:
                break
            queue = entries[-1][1]
            path.append(queue)
        return path

    def _standing(self, queue: int) -> Key:
        off = self._off.get(queue)
        if off is None:
            return self._holders.key(queue)
        return key_of(self._ledger, queue, self._ledger.held[queue], tuple(off), -1)

    def _take_off(self, piece: Piece) -> None:
        off, count = self._off, len(piece.spots)
        for queue in piece.member.path:
            if queue not in off:
                off[queue] = [0] * len(self._ledger.kinds)
            less = off[queue]
            for kind, amount in piece.member.counts:
                less[kind] += amount * count

    def _reenter(self, path: Sequence[int]) -> None:
        """Enter who was asked, and those above it, anew among their siblings."""
        parent = -1
        for queue in path:
            entries = self._open[parent]
            # It was the last one, and most often it still is.
            entry = entries[-1] = (self._standing(queue), queue)
            if len(entries) > 1 and entry < entries[-2]:
                entries.pop()
                insort(entries, entry)
            parent = queue
