"""Who may be asked to give under least attained service, for whom, and in which order.

Asked by `giving_way`. Within a queue levels decide alone. Between queues, those of a higher level
give what their queue holds beyond its guarantee; and for a claim inside its queue's guarantee any
level gives, even workers larger than what their queue has beyond, for else a large gang could keep
others from what they are guaranteed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .amounts import WHOLE_DEVICE
from .inventory import Spot
from .ledger import Ledger, Member, Turn
from .pieces import Piece
from .protected import is_protected
from .served import Served
from .service_holders import ServiceHolders


@dataclass(slots=True, eq=False)
class Asking:
    """On whose behalf others are asked.

    Attributes:
        guaranteed: The queues of the claimant inside whose guarantee it stays.
        beyond: Thousandths of devices that queues at the top hold beyond their guarantees, where
            it is more than none.
        over: The queue whose limit stands in the way, if any: only from below it helps to take.
    """

    ledger: Ledger
    holders: ServiceHolders
    claimant: Served
    guaranteed: frozenset[int]
    beyond: Mapping[int, int]
    over: int | None = None

    @property
    def least_level(self) -> int:
        """The lowest level of those who may be asked."""
        return 0 if self.guaranteed else self.claimant.level + 1


def asking_for(ledger: Ledger, holders: ServiceHolders, claimant: Served) -> Asking:
    """Look up what decides who may be asked for a claim."""
    member = claimant.member
    inside = frozenset(queue for queue in member.path if stays_inside(ledger, member, queue))
    return Asking(ledger, holders, claimant, inside, holders.beyond_guarantee())


def stays_inside(ledger: Ledger, member: Member, queue: int) -> bool:
    """Whether a queue holds no more than its guarantee once a claim has all it needs."""
    held, guarantee, needs = ledger.held[queue], ledger.guarantee[queue], member.needs
    if member.each[0] and not guarantee[0]:
        return False  # asked so often that this answer should cost nothing
    return all(
        has + amount * needs <= most
        for has, amount, most in zip(held, member.each, guarantee, strict=True)
        if amount
    )


class Asked(NamedTuple):
    """A piece that may be asked for.

    Attributes:
        gives: How many devices of the bay in question it is of.
    """

    served: Served
    piece: Piece
    gives: int


def asked_in_turn(asking: Asking, bay: int, lacking: int) -> list[Asked]:
    """Those in a bay who may be asked: surplus first, then who attained most, then the youngest.

    Of one level, who gives no more than is lacking comes first, and of those the largest.
    """

    def rank(asked: Asked) -> tuple[bool, int, bool, int, float, str, Spot]:
        (served, piece, gives), view = asked, asked.piece.member.view
        first = (piece.is_rest, -served.level, gives > lacking, -gives)
        return (*first, -view.since_s, view.id, piece.spots[0])

    may_ask = [s for s in asking.holders.in_bay[bay].values() if _may_ask(asking, s)]
    if _given_at_most(asking, may_ask, bay) < lacking:
        return []
    return sorted(
        (
            Asked(served, piece, _devices_in(piece.spots, bay))
            for served in may_ask
            for piece in _pieces_in(served.member, bay)
        ),
        key=rank,
    )


def _given_at_most(asking: Asking, may_ask: Sequence[Served], bay: int) -> int:
    """Devices of a bay that these could give at the very most, by what their queues are guaranteed.

    Where a pool is full of claims inside their guarantees, most hosts are passed over by this.
    """
    held, largest = dict[int, int](), dict[int, int]()
    for served in may_ask:
        devices, top = _devices_in(served.member.spots, bay), served.top
        held[top] = held.get(top, 0) + devices
        largest[top] = max(largest.get(top, 0), devices)
    mine = asking.claimant.top
    is_owed = mine in asking.guaranteed
    return sum(
        devices
        if top == mine
        # What is owed may go a little beyond: the last worker to go may be larger.
        else min(devices, -(-asking.beyond[top] // WHOLE_DEVICE) + (largest[top] - 1) * is_owed)
        for top, devices in held.items()
    )


def _may_ask(asking: Asking, served: Served) -> bool:
    member, claimant = served.member, asking.claimant
    if not served.is_open or member.turn is not Turn.NONE or member is claimant.member:
        return False
    if served.top != claimant.top and served.top not in asking.beyond:
        return False
    if served.level <= claimant.level and not _is_owed(asking, member):
        return False
    if asking.over is not None and asking.over not in member.path:
        return False
    return not is_protected(asking.ledger, member, claimant.member)


def _is_owed(asking: Asking, giver: Member) -> bool:
    """Whether the claimant stays inside a guarantee where its queues and the giver's part."""
    if not asking.guaranteed:
        return False
    mine, theirs = _sides(asking.claimant.member.path, giver.path)
    return mine != theirs and mine in asking.guaranteed


def keeps_guarantees(asking: Asking, piece: Piece, off: dict[tuple[int, int], int]) -> bool:
    """Whether the guarantees on the giver's side allow a piece to go; if so, counts it.

    Args:
        asking: For whom.
        piece: What would go.
        off: What was counted before, by queue and kind.
    """
    ledger, member = asking.ledger, piece.member
    mine, theirs = _sides(asking.claimant.member.path, member.path)
    if mine == theirs:
        return True
    is_owed = mine in asking.guaranteed
    given = [
        (queue, kind, amount * len(piece.spots))
        for queue in member.path[: member.path.index(theirs) + 1]
        for kind, amount in enumerate(member.each)
        if amount
    ]
    for queue, kind, amount in given:
        beyond = (
            ledger.held[queue][kind] - off.get((queue, kind), 0) - ledger.guarantee[queue][kind]
        )
        if beyond <= 0 or (beyond < amount and not is_owed):
            return False
    for queue, kind, amount in given:
        off[queue, kind] = off.get((queue, kind), 0) + amount
    return True


def _pieces_in(member: Member, bay: int) -> Iterator[Piece]:
    """What a claim could give in a bay: workers beyond its minimum, then all it has."""
    surplus = list[Spot]()
    if member.surplus:
        here = sorted((spot for spot in member.spots if spot.bay == bay), reverse=True)
        surplus = here[: member.surplus]
        for spot in surplus:
            yield Piece(member, (spot,))
        if len(surplus) == len(here):
            return
    rest = tuple(sorted(spot for spot in member.spots if spot not in surplus))
    if rest:
        yield Piece(member, rest, is_rest=True)


def _devices_in(spots: Iterable[Spot], bay: int) -> int:
    return sum(spot.devices.bit_count() for spot in spots if spot.bay == bay)


def _sides(mine: Sequence[int], theirs: Sequence[int]) -> tuple[int, int]:
    """The two queues, one of each path, that meet in one parent; the leaf twice if it is one."""
    if mine[-1] != theirs[-1]:
        return mine[-1], theirs[-1]
    pairs = zip(reversed(mine), reversed(theirs), strict=False)
    return next(((one, other) for one, other in pairs if one != other), (mine[0], theirs[0]))
