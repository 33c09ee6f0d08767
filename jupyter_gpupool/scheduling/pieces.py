"""What claims can give back: surplus workers one at a time, then all of the rest together."""

from collections.abc import Iterator
from typing import NamedTuple

from .inventory import Spot
from .ledger import Member


class Piece(NamedTuple):
    """Workers of one claim that can only go together.

    Attributes:
        is_rest: They are all that a claim must not run without.
    """

    member: Member
    spots: tuple[Spot, ...]
    is_rest: bool = False


def pieces_of(member: Member) -> Iterator[Piece]:
    """What a claim can give back, in order."""
    rest = len(member.spots) - member.surplus
    for spot in reversed(member.spots[rest:]):
        yield Piece(member, (spot,))
    if rest:
        yield Piece(member, tuple(member.spots[:rest]), is_rest=True)


def asked_first(piece: Piece) -> tuple[bool, int, bool, float, str, int]:
    """Who of a queue is asked first: idle, low priority, surplus, the youngest."""
    view = piece.member.view
    started = view.started_s if view.started_s is not None else view.since_s
    spared = len(piece.member.spots) - piece.member.spots.index(piece.spots[0])
    return (not view.idle, view.priority, piece.is_rest, -started, view.id, spared)
