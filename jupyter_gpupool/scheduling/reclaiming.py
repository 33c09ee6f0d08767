"""Reclaim for others: a queue below its share gets back what others hold beyond theirs.

Design section 5.4. A claimant may ask only within its own share. Whoever is asked must hold more
than its share when it is asked, or more than its guarantee if the claimant stays inside its own;
and afterwards the claimant's queue may not be fuller, measured by its share, than one that gave.
"""

from collections.abc import Iterable, Iterator, Sequence

from .amounts import NO_LIMIT, Amount
from .ledger import Ledger, Member
from .making_room import Piece, Room, make_room
from .protected import is_protected
from .victims import asked_in_turn


def reclaim_for(ledger: Ledger, claimant: Member) -> Room | None:
    """Find what other queues have to give back for a claim, if they have to."""
    if not may_claim(ledger, claimant):
        return None
    givers = [m for m in ledger.members.values() if _may_be_asked(ledger, claimant, m)]
    if not givers:
        return None
    return make_room(
        ledger,
        claimant,
        lambda: asked_in_turn(ledger, givers),
        lambda taken, _: may_take(ledger, claimant, taken),
        may_move=ledger.rules.may_move,
    )


def may_claim(ledger: Ledger, claimant: Member) -> bool:
    """Whether a claim stays inside its queue's share, and inside its guarantee if it is firm."""
    queue, count = claimant.leaf, claimant.needs
    wanted = _with(ledger.held[queue], claimant.each, count)
    if not _within(wanted, ledger.share[queue]):
        return False
    if not claimant.view.firm or ledger.is_user[queue]:
        return True
    return _within(_with(ledger.firm[queue], claimant.each, count), ledger.guarantee[queue])


def may_take(ledger: Ledger, claimant: Member, taken: Sequence[Piece]) -> bool:
    """Whether these pieces may be taken for a claim, judged on what was held before."""
    left: dict[int, list[int]] = {}
    for piece in taken:
        mine, theirs = _sides(claimant.path, piece.member.path)
        holds = left.get(theirs, ledger.held[theirs])
        if not _owes(ledger, claimant, mine, theirs, holds):
            return False
        for queue in piece.member.path:
            rest = left.setdefault(queue, list(ledger.held[queue]))
            for kind, amount in enumerate(piece.member.each):
                rest[kind] -= amount * len(piece.spots)
    return _stays_below(ledger, claimant, left) and _stays_guaranteed(ledger, claimant)


def _owes(ledger: Ledger, claimant: Member, mine: int, theirs: int, holds: Sequence[int]) -> bool:
    """Whether a queue holds more than it may keep from the claimant's side of the tree."""
    if not _within(holds, ledger.allowed[theirs]):
        return True
    wanted = _with(ledger.held[mine], claimant.each, claimant.needs)
    is_for_sure = _within(wanted, ledger.guarantee[mine])
    return is_for_sure and not _within(holds, ledger.guarantee[theirs])


def _stays_below(ledger: Ledger, claimant: Member, left: dict[int, list[int]]) -> bool:
    """Whether the claimant's queues end no fuller than any sibling that gave."""
    for queue in claimant.path:
        after = _with(left.get(queue, ledger.held[queue]), claimant.each, claimant.needs)
        for other, rest in left.items():
            is_sibling = ledger.parent[other] == ledger.parent[queue] and other != queue
            if is_sibling and not _is_fuller(ledger, other, rest, queue, after):
                return False
    return True


def _is_fuller(
    ledger: Ledger, other: int, rest: Sequence[int], queue: int, after: Sequence[int]
) -> bool:
    for kind, (mine, theirs) in enumerate(zip(after, rest, strict=True)):
        fair, their_fair = ledger.share[queue][kind], ledger.share[other][kind]
        if not mine or not their_fair or fair >= NO_LIMIT:
            continue
        # As products, for a quotient of whole numbers is not exact.
        if mine > fair and mine * their_fair >= theirs * fair:
            return False
    return True


def _stays_guaranteed(ledger: Ledger, claimant: Member) -> bool:
    return ledger.over_guarantee(claimant, claimant.needs) is None


def _may_be_asked(ledger: Ledger, claimant: Member, member: Member) -> bool:
    if not member.spots or member.leaf == claimant.leaf or member.view.firm:
        return False
    mine, theirs = _sides(claimant.path, member.path)
    owes = _owes(ledger, claimant, mine, theirs, ledger.held[theirs])
    if not owes and not ledger.rules.may_move:
        return False
    return not is_protected(ledger, member, claimant)


def _sides(mine: Iterable[int], theirs: Iterable[int]) -> tuple[int, int]:
    """The two children of the common ancestor on whose sides two queues stand."""
    pair = (-1, -1)
    for pair in _down(tuple(mine), tuple(theirs)):
        if pair[0] != pair[1]:
            break
    return pair


def _down(mine: tuple[int, ...], theirs: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    return zip(reversed(mine), reversed(theirs), strict=False)


def _with(held: Sequence[int], each: Amount, count: int) -> list[int]:
    return [mine + amount * count for mine, amount in zip(held, each, strict=True)]


def _within(amounts: Sequence[int], bound: Sequence[int]) -> bool:
    return all(amount <= most for amount, most in zip(amounts, bound, strict=True))
