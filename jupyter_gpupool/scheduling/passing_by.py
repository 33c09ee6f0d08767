"""Reservations, and who may pass by one: run on what is kept for another.

Asked by `kept`. By are let the better right, those whose limit ends them in time, a booked queue's
own claims, the higher rank of the holder's own queue, and, as a loan, those that are thought to be
gone in time and can be hibernated if they are not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .inventory import Spot
from .ledger import Ledger, Member
from .outlook import Gap, Keeping
from .protection import protected_s
from .remaining import must_end_s
from .shape import WorkerShape
from .standing import Standing, standing_of


@dataclass(slots=True, eq=False)
class Reservation:
    """Where a blocked claim can start, and when; or where devices are booked for a queue.

    Attributes:
        holder: The claim, or None for a booking.
        hidden: What nobody else may have now.
        is_hidden: Whether the books show it as held at this moment.
        queue: The number of the queue that booked, else -1; its claims may start early.
    """

    holder: Member | None
    gap: Gap
    standing: Standing
    hidden: list[Keeping]
    is_hidden: bool = True
    queue: int = -1


def may_pass_by(
    ledger: Ledger, member: Member, standing: Standing, reservation: Reservation
) -> bool:
    """Whether a claim of this standing may have what is kept by a reservation."""
    if standing < reservation.standing and not _is_outranked(member, reservation):
        return True
    return (
        ends_before(ledger, member, reservation)
        or is_its_own(member, reservation)
        or _may_be_lent(ledger, member, reservation)
    )


def is_loan(ledger: Ledger, member: Member, reservation: Reservation) -> bool:
    """Whether a claim that passes by may be asked to leave again once the reservation is due."""
    if is_its_own(member, reservation) or ends_before(ledger, member, reservation):
        return False
    return standing_of(ledger, member, member.needs) >= reservation.standing


def is_its_own(member: Member, reservation: Reservation) -> bool:
    """Whether it is kept for a claim or its queue, or the claim could take it by rank."""
    holder = reservation.holder
    if holder is None:
        return reservation.queue in member.path
    if holder.leaf != member.leaf:
        return False
    return holder is member or holder.view.priority < member.view.priority


def ends_before(ledger: Ledger, member: Member, reservation: Reservation) -> bool:
    """Whether a claim's limit ends it before the reservation starts."""
    limit_s = must_end_s(member.view, ledger.now_s)
    return limit_s is not None and limit_s <= reservation.gap.start_s


def _is_outranked(member: Member, reservation: Reservation) -> bool:
    """Whether the holder is of the claim's own queue and of no lower rank: it was there first.

    What is left of a queue's share is enough for small claims and not for a gang: they would pass
    it by for ever.
    """
    holder = reservation.holder
    if holder is None or holder.leaf != member.leaf:
        return False
    return holder.view.priority >= member.view.priority


def _may_be_lent(ledger: Ledger, member: Member, reservation: Reservation) -> bool:
    """Whether a claim is thought to have ended before, and may be hibernated if it has not."""
    view, left_s, holder = member.view, reservation.gap.start_s - ledger.now_s, reservation.holder
    if holder is None or view.expected_s is None or view.expected_s > left_s:
        return False
    if not view.can_hibernate or view.firm or member.spots:
        return False
    claimant, victim = holder.view.queue, view.queue
    return protected_s(ledger.tree, claimant=claimant, victim=victim) <= left_s


def touches(reservation: Reservation, spots: Sequence[Spot]) -> bool:
    """Whether any of these spots is of what a reservation keeps."""
    return any(
        kept.spot.bay == spot.bay and kept.spot.devices & spot.devices
        for kept in reservation.hidden
        for spot in spots
    )


def without(hidden: Iterable[Keeping], spots: Sequence[Spot]) -> Iterator[Keeping]:
    """What is left to hide once these spots are somebody's."""
    for worker, spot in hidden:
        gone = 0
        for other in spots:
            gone |= other.devices if other.bay == spot.bay else 0
        left = spot.devices & ~gone
        if left == spot.devices:
            yield Keeping(worker, spot)
        elif left:
            yield Keeping(WorkerShape(devices=left.bit_count()), Spot(spot.bay, left))
