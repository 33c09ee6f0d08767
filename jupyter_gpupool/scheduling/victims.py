"""Who is asked first to give back: the queue furthest over its share, and in it the youngest.

Within a queue: idle before busy, lower priority first, those above their minimum, the youngest. The
queues are compared by the same key as for service, the other way round, with all that was asked
before taken off.
"""

from collections.abc import Callable, Iterable, Iterator

from .ledger import Ledger, Member
from .making_room import Piece, pieces_of
from .queue_order import Key, key_of


def asked_in_turn(ledger: Ledger, members: Iterable[Member]) -> Iterator[Piece]:
    """Give the pieces of these claims in the order in which they are asked."""
    waiting: dict[int, list[Piece]] = {}
    for member in members:
        waiting.setdefault(member.leaf, []).extend(pieces_of(member))
    for pieces in waiting.values():
        # From the end: whoever is asked first comes last.
        pieces.sort(key=_rank, reverse=True)
    off = [[0] * len(ledger.kinds) for _ in ledger.names]
    children = _tree(ledger, waiting)
    while -1 in children:
        queue = -1
        while queue not in waiting:
            queue = max(children[queue], key=_standing(ledger, waiting, children, off))
        piece = waiting[queue].pop()
        if not waiting[queue]:
            _prune(ledger, waiting, children, queue)
        for above in piece.member.path:
            for kind, amount in enumerate(piece.member.each):
                off[above][kind] -= amount * len(piece.spots)
        yield piece


def _rank(piece: Piece) -> tuple[bool, int, bool, float, str, int]:
    view = piece.member.view
    started = view.started_s if view.started_s is not None else view.since_s
    spared = len(piece.member.spots) - piece.member.spots.index(piece.spots[0])
    return (not view.idle, view.priority, piece.is_rest, -started, view.id, spared)


def _tree(ledger: Ledger, leaves: Iterable[int]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for leaf in sorted(leaves):
        queue = leaf
        while queue >= 0:
            siblings = children.setdefault(ledger.parent[queue], [])
            if queue in siblings:
                break
            siblings.append(queue)
            queue = ledger.parent[queue]
    return children


def _standing(
    ledger: Ledger,
    waiting: dict[int, list[Piece]],
    children: dict[int, list[int]],
    off: list[list[int]],
) -> Callable[[int], Key]:
    def key(queue: int) -> Key:
        piece = _next(ledger, waiting, children, off, queue)
        given = (amount * len(piece.spots) for amount in piece.member.each)
        asked = tuple(less - more for less, more in zip(off[queue], given, strict=True))
        return key_of(ledger, queue, asked)

    return key


def _next(
    ledger: Ledger,
    waiting: dict[int, list[Piece]],
    children: dict[int, list[int]],
    off: list[list[int]],
    queue: int,
) -> Piece:
    while queue not in waiting:
        key = _standing(ledger, waiting, children, off)
        queue = children[queue][0] if len(children[queue]) == 1 else max(children[queue], key=key)
    return waiting[queue][-1]


def _prune(
    ledger: Ledger, waiting: dict[int, list[Piece]], children: dict[int, list[int]], queue: int
) -> None:
    del waiting[queue]
    while queue >= 0 and queue not in children:
        parent = ledger.parent[queue]
        children[parent].remove(queue)
        if not children[parent]:
            del children[parent]
        queue = parent
