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
    if found and needs > 1:
        # Looked for one by one they are anywhere; all room known, they go together if they can.
        ledger.take(member, spots)
        spots = place(ledger, member, needs, needs) or spots
    ledger.roll_back(mark)
    return Room(tuple(taken), (), spots) if found else None


def _serve_one(asking: Asking, taken: list[Piece]) -> bool:
    """Take from as few as possible on one host what one worker lacks."""
    ledger, member = asking.ledger, asking.claimant.member
    asking.over = ledger.over_limit(member, 1)
    if asking.over is None and _place_one(asking):
        return True
    for offer in _gathered(asking):
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


def _gathered(asking: Asking) -> list[_Offer]:
    """What the claims on each host could give, the least harm first."""
    offers = list[_Offer]()
    least: tuple[bool, int] | None = None
    for level, bay in sorted(_promising(asking)):
        # The other bays need lower levels, and where nobody may shrink somebody has to stop.
        if least is not None and least < (not asking.holders.may_shrink, level):
            break
        for offer in _offers(asking, bay):
            offers.append(offer)
            if _is_plain(asking) and (least is None or offer[:2] < least):
                least = offer[:2]
    return sorted(offers, key=lambda offer: offer[:-1])


def _is_plain(asking: Asking) -> bool:
    """Whether devices alone say how much is enough: no cores, memory, parts or limits count."""
    shape = asking.claimant.member.view.worker
    return not (shape.share or shape.cpu or shape.memory_bytes) and asking.over is None


def _promising(asking: Asking) -> Iterator[tuple[int, int]]:
    """The bays where those who may be asked hold enough, their queues' guarantees left aside.

    Each comes with the highest level that is enough, negated.
    """
    inventory, shape = asking.ledger.inventory, asking.claimant.member.view.worker
    for bay in bits(inventory.accepting(shape)):
        asked = asking.holders.open_in[bay]
        lacking = shape.devices - inventory.bays[bay].whole.bit_count()
        if not asked[asking.least_level] or asked[asking.least_level] < lacking:
            continue
        level = asking.least_level
        while asked[level + 1] and asked[level + 1] >= lacking:
            level += 1
        yield -level, bay


def _offers(asking: Asking, bay: int) -> Iterator[_Offer]:
    """What those in a bay could give: as few as are enough, or one more each time if unclear."""
    is_plain = _is_plain(asking)
    shape = asking.claimant.member.view.worker
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
