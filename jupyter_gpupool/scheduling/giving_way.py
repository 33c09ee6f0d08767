"""Who gives way to a claim that has attained less service: as few as can be, one host at a time.

Called by `attained_service` for a claim that finds no place. Who may be asked, and in which order,
is `may_give`'s to say. Of all hosts that one gives where those who have attained most are enough.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .bits import bits
from .ledger import Ledger
from .making_room import Room
from .may_give import Asked, Asking, asked_in_turn, asking_for, keeps_guarantees
from .pieces import Piece
from .served import Served
from .service_holders import ServiceHolders
from .spots import place


class _Offer(NamedTuple):
    """What some could give on one host, and at what harm: the smallest is taken first.

    Attributes:
        stops: Whether anybody has to stop and not just to shrink.
        level: The lowest that gives, negated.
        thousandths: All that is given, elsewhere too.
    """

    stops: bool
    level: int
    thousandths: int
    claims: int
    bay: int
    pieces: tuple[Piece, ...]


def room_for(ledger: Ledger, holders: ServiceHolders, claimant: Served) -> Room | None:
    """Find who has to give so that a claim gets all it needs; changes nothing."""
    member, mark = claimant.member, ledger.mark()
    asking, taken = asking_for(ledger, holders, claimant), list[Piece]()
    had, needs = len(member.spots), member.needs
    found = all(_serve_one(asking, taken) for _ in range(needs))
    spots = tuple(member.spots[had:])
    ledger.roll_back(mark)
    return Room(tuple(taken), (), spots) if found else None


def _serve_one(asking: Asking, taken: list[Piece]) -> bool:
    """Take from as few as possible on one host what one worker lacks."""
    ledger, member = asking.ledger, asking.claimant.member
    asking.over = ledger.over_limit(member, 1)
    if asking.over is None and _place_one(asking):
        return True
    offers = (offer for bay in _promising(asking) for offer in _offers(asking, bay))
    for offer in sorted(offers, key=lambda offer: offer[:-1]):
        mark = ledger.mark()
        for piece in offer.pieces:
            ledger.take(piece.member, piece.spots)
        if ledger.over_limit(member, 1) is None and _place_one(asking):
            taken += offer.pieces
            return True
        ledger.roll_back(mark)
    return False


def _place_one(asking: Asking) -> bool:
    spots = place(asking.ledger, asking.claimant.member, 1, 1)
    asking.ledger.grant(asking.claimant.member, spots)
    return bool(spots)


def _promising(asking: Asking) -> Iterator[int]:
    """The bays where those who may be asked hold enough, their queues' guarantees left aside."""
    inventory, open_in = asking.ledger.inventory, asking.holders.open_in
    shape, level = asking.claimant.member.view.worker, asking.least_level
    return (
        bay
        for bay in bits(inventory.accepting(shape))
        if (asked := open_in[bay][level])
        if asked + inventory.bays[bay].whole.bit_count() >= shape.devices
    )


def _offers(asking: Asking, bay: int) -> Iterator[_Offer]:
    """What those in a bay could give: as few as free enough, or one more each time if that varies.

    Only for whole devices, with cores, memory and limits aside, is it known when it is enough.
    """
    shape = asking.claimant.member.view.worker
    is_plain = not (shape.share or shape.cpu or shape.memory_bytes) and asking.over is None
    lacking = shape.devices - asking.ledger.inventory.bays[bay].whole.bit_count()
    freed, chosen, off = 0, list[Asked](), dict[tuple[int, int], int]()
    for asked in asked_in_turn(asking, bay, lacking):
        if not keeps_guarantees(asking, asked.piece, off):
            continue
        chosen.append(asked)
        freed += asked.gives
        if not is_plain:
            yield _offer(chosen, bay)
        elif freed >= lacking:
            yield _offer(_without_spared(chosen, freed - lacking), bay)
            return


def _without_spared(chosen: Sequence[Asked], too_many: int) -> list[Asked]:
    """Those without whom it is not enough: the last to be asked can make others needless.

    Whoever stops gives all it has, so its surplus goes in any case.
    """
    stopped = {asked.piece.member.view.id for asked in chosen if asked.piece.is_rest}
    needed = list[Asked]()
    for asked in chosen:
        goes_anyway = not asked.piece.is_rest and asked.piece.member.view.id in stopped
        if asked.gives <= too_many and not goes_anyway:
            too_many -= asked.gives
        else:
            needed.append(asked)
    return needed


def _offer(chosen: Sequence[Asked], bay: int) -> _Offer:
    pieces = tuple(asked.piece for asked in chosen)
    return _Offer(
        stops=any(piece.is_rest for piece in pieces),
        level=-min(asked.served.level for asked in chosen),
        thousandths=sum(p.member.view.worker.thousandths * len(p.spots) for p in pieces),
        claims=len({piece.member.view.id for piece in pieces}),
        bay=bay,
        pieces=pieces,
    )
