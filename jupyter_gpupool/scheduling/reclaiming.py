"""Reclaim for others: a queue below its share gets back what others hold beyond theirs.

Design section 5.4. A claimant may ask only within its own share. Whoever is asked must hold more
than its share when it is asked, or more than its guarantee if the claimant stays inside its own;
and afterwards the claimant's queue may not be fuller, measured by its share, than one that gave.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .amounts import NO_LIMIT, Amount, is_within, more
from .improving import makes_fairer
from .ledger import Ledger, Member
from .making_room import Room, make_room
from .most_given import might_be_enough, needs_devices_alone
from .pieces import Piece
from .protected import is_protected
from .protection import protected_s
from .queue_order import rank_of
from .victims import Holders, asked_in_turn


def might_reclaim(holders: Holders, claimant: Member) -> bool:
    """Whether a claim may ask others at all: it is entitled to more, and somebody owes."""
    ledger, count, leaf = holders.ledger, claimant.needs, claimant.leaf
    held, share = holders.held[leaf], ledger.share[leaf]
    # Most are stopped here, where each costs next to nothing.
    if held[0] + claimant.each[0] * count > share[0]:
        return False
    asking = Asking(holders, claimant, count)
    return asking.is_entitled() and asking.somebody_owes()


def reclaim_for(holders: Holders, claimant: Member) -> Room | None:
    """Find what other queues have to give back for a claim, if they have to."""
    ledger, count = holders.ledger, claimant.needs
    asking = Asking(holders, claimant, count)
    if not asking.is_entitled() or not asking.somebody_owes():
        return None
    kind = (reclaim_for, claimant.leaf, claimant.view.worker, claimant.view.priority)
    if not holders.may_search(kind, count):
        return None
    if not might_be_enough(ledger, claimant, asking.most_given()):
        return holders.found(kind, count, None)
    pieces = (
        piece
        for piece in asked_in_turn(holders, asking.below)
        if not is_protected(ledger, piece.member, claimant)
    )
    room = make_room(
        ledger,
        claimant,
        # Where nobody has anything of use, it fits on what is free or not at all.
        pieces if asking.is_of_use() else iter(()),
        # Those that are only moved lose nothing.
        lambda taken, _: asking.may_take(taken),
        may_move=ledger.rules.may_move,
    )
    return holders.found(kind, count, room)


@dataclass(frozen=True, slots=True)
class Asking:
    """One claim that asks for `count` workers, judged by what was held before anybody gave."""

    holders: Holders
    claimant: Member
    count: int
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        """The books."""
        return self.holders.ledger

    def is_entitled(self) -> bool:
        """Whether it stays inside its queue's share, and inside its guarantee if it is firm."""
        ledger, queue = self.ledger, self.claimant.leaf
        if ledger.over_guarantee(self.claimant, self.count) is not None:
            return False
        return is_within(self._wanted(queue), ledger.share[queue])

    def somebody_owes(self) -> bool:
        """Whether any other queue has to give, or might be moved."""
        return any(
            child != mine
            for mine in reversed(self.claimant.path)
            for child in self._siblings(self.ledger.parent[mine], mine)
        )

    def sides(self) -> Iterator[int]:
        """Siblings of the queues of the claim's path that may be asked, if anybody there may."""
        path = self.claimant.path
        for mine in path:
            for child in self.below(self.ledger.parent[mine]):
                if child not in path and not self._is_all_protected(child):
                    yield child

    def most_given(self) -> Iterator[int]:
        """Devices of use to the claim that each of these could give at the most, the near first."""
        shape, most_given = self.claimant.view.worker, self.holders.most_given
        return (most_given.devices(side, shape) for side in self.sides())

    def is_of_use(self) -> bool:
        """Whether it can help at all to ask others."""
        if needs_devices_alone(self.ledger, self.claimant):
            return any(self.most_given())
        return any(True for _ in self.sides())

    def _is_all_protected(self, side: int) -> bool:
        """Whether all who hold anything below a sibling of the claim's path are too young."""
        ledger = self.ledger
        if not ledger.protects:
            return False
        claimant, victim = self.claimant.view.queue, ledger.names[side]
        least_s = protected_s(ledger.tree, claimant=claimant, victim=victim)
        return ledger.now_s - self.holders.most_given.oldest_s(side) < least_s

    def below(self, queue: int) -> tuple[int, ...]:
        """The children of a queue that may be asked: below its own path, those that owe."""
        found = self._known.get(queue)
        if found is None:
            found = self._known[queue] = tuple(self._below(queue))
        return found

    def _below(self, queue: int) -> Iterator[int]:
        holders, path = self.holders, self.claimant.path
        if queue >= 0 and queue not in path:
            yield from holders.below(queue)
            return
        mine = next((q for q in path if self.ledger.parent[q] == queue), -1)
        if mine >= 0 and mine != self.claimant.leaf and self.below(mine):
            yield mine
        yield from (child for child in self._siblings(queue, mine) if child != mine)

    def _siblings(self, parent: int, mine: int) -> Iterable[int]:
        """The children of a queue on the claimant's path that owe its side something."""
        if self.ledger.rules.may_move:
            return self.holders.below(parent)
        return self.holders.owing(parent, beyond_guarantee=self._is_for_sure(mine))

    def _is_for_sure(self, mine: int) -> bool:
        """Whether with what is asked a queue of the claimant's path stays in its guarantee."""
        return is_within(self._wanted(mine), self.ledger.guarantee[mine])

    def may_take(self, taken: Sequence[Piece]) -> bool:
        """Whether these pieces may be taken."""
        left: dict[int, list[int]] = {}
        for piece in taken:
            theirs = self._their_side(piece.member)
            if not self._owes(theirs, left.get(theirs, self.holders.held[theirs])):
                return False
            for queue in piece.member.path:
                rest = left.setdefault(queue, list(self.holders.held[queue]))
                for kind, amount in enumerate(piece.member.each):
                    rest[kind] -= amount * len(piece.spots)
        if not self._stays_below(left) or self._would_be_asked_back(taken, left):
            return False
        return all(self._makes_fairer(queue, left) for queue in self.claimant.path)

    def _makes_fairer(self, mine: int, left: Mapping[int, Sequence[int]]) -> bool:
        """Whether the level of a queue of the claimant's path gets fairer, if anybody gives there.

        What is guaranteed is due however full it makes a queue, and so is what goes to a queue of
        higher priority.
        """
        ledger, held = self.ledger, self.holders.held
        parent, rank = ledger.parent[mine], ledger.queues[mine].priority
        after = {queue: rest for queue, rest in left.items() if ledger.parent[queue] == parent}
        givers = [queue for queue in after if queue != mine]
        after[mine] = self._wanted(mine, left.get(mine))
        if not givers or is_within(after[mine], ledger.guarantee[mine]):
            return True
        if all(ledger.queues[queue].priority < rank for queue in givers):
            return True
        return makes_fairer(ledger, parent, {queue: held[queue] for queue in after}, after)

    def _would_be_asked_back(
        self, taken: Sequence[Piece], left: Mapping[int, Sequence[int]]
    ) -> bool:
        """Whether any of these would stand in line before the claimant once it has given.

        It would get back what it gave, and lose it again, for ever.
        """
        ledger, mine = self.ledger, self.claimant
        for piece in taken:
            member = piece.member
            theirs = self._their_side(member)
            ours = next(q for q in mine.path if ledger.parent[q] == ledger.parent[theirs])
            held = left.get(ours, self.holders.held[ours])
            urgency, count = mine.view.priority, len(piece.spots)
            first = rank_of(ledger, ours, held, mine.each, self.count, urgency=urgency)
            urgency, rest = member.view.priority, left[theirs]
            if rank_of(ledger, theirs, rest, member.each, count, urgency=urgency) < first:
                return True
        return False

    def _their_side(self, member: Member) -> int:
        """The child of the common ancestor on whose side a claim stands."""
        path = self.claimant.path
        return next(q for q in member.path if self.ledger.parent[q] in (-1, *path))

    def _owes(self, theirs: int, holds: Sequence[int]) -> bool:
        """Whether a queue holds more than it may keep from the claimant's side of the tree."""
        ledger = self.ledger
        if not is_within(holds, ledger.allowed[theirs]):
            return True
        parent = ledger.parent[theirs]
        mine = next(queue for queue in self.claimant.path if ledger.parent[queue] == parent)
        return self._is_for_sure(mine) and not is_within(holds, ledger.guarantee[theirs])

    def _stays_below(self, left: dict[int, list[int]]) -> bool:
        """Whether the claimant's queues, beyond their guarantees, end no fuller than who gave."""
        ledger = self.ledger
        for queue in self.claimant.path:
            after = self._wanted(queue, left.get(queue))
            if is_within(after, ledger.guarantee[queue]):
                continue
            for other, rest in left.items():
                is_sibling = ledger.parent[other] == ledger.parent[queue] and other != queue
                if is_sibling and not self._is_fuller(other, rest, queue, after):
                    return False
        return True

    def _is_fuller(self, other: int, rest: Sequence[int], queue: int, after: Sequence[int]) -> bool:
        share, their_share = self.ledger.share[queue], self.ledger.share[other]
        for kind, (mine, theirs) in enumerate(zip(after, rest, strict=True)):
            fair, their_fair = share[kind], their_share[kind]
            if not mine or not their_fair or fair >= NO_LIMIT:
                continue
            # As products, for a quotient of whole numbers is not exact.
            if mine > fair and mine * their_fair >= theirs * fair:
                return False
        return True

    def _wanted(self, queue: int, held: Sequence[int] | None = None) -> Amount:
        held = self.holders.held[queue] if held is None else held
        return more(held, self.claimant.each, self.count)
