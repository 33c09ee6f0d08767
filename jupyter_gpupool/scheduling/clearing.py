"""Who has to leave so that booked devices are empty when their window opens, and by when.

Asked in each pass before grants: what is free is kept from whoever would still hold it then, and
where that is too little, claims beyond their queues' guarantees get notice, which a later pass
repeats as long as it holds. Claims that end in time are let end; elastic ones shrink; only then
is anybody hibernated.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jupyter_gpupool.pool.ids import ClaimId

from .bits import bits, first
from .decisions import TakeHow
from .inventory import Spot
from .kept import Kept
from .ledger import Ledger, Member
from .outlook import Keeping
from .remaining import must_end_s
from .reservations import LEAD_S, Booking
from .shape import WHOLE, HeldWorker, WorkerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Workers that a claim has to give back by a moment, unless a later pass repeats it no more.

    Attributes:
        by_s: When the window opens.
        booking: For which booking.
    """

    claim_id: ClaimId
    workers: tuple[HeldWorker, ...]
    how: TakeHow
    by_s: float
    booking: str
    reason: str


def clear_for(ledger: Ledger, bookings: Iterable[Booking], kept: Kept) -> tuple[Notice, ...]:
    """Keep and clear devices for bookings whose windows open soon.

    Args:
        ledger: The books, before anything is granted.
        bookings: All of them, in order of their windows.
        kept: Reservations of this pass; devices for the bookings are added.
    """
    given: dict[ClaimId, list[Spot]] = {}
    notices: list[Notice] = []
    for booking in bookings:
        if (
            ledger.now_s < booking.from_s <= ledger.now_s + LEAD_S
            and booking.queue in ledger.number
        ):
            notices += _clear(ledger, booking, kept, given)
    return tuple(notices)


def _clear(
    ledger: Ledger, booking: Booking, kept: Kept, given: dict[ClaimId, list[Spot]]
) -> Iterator[Notice]:
    lacking = booking.devices - _has_beyond_guarantee(ledger, booking.queue)
    free = _keep_free(ledger, lacking)
    kept.keep_until(booking.from_s, ledger.number[booking.queue], free)
    lacking -= sum(keeping.spot.devices.bit_count() for keeping in free)
    lacking -= _will_end(ledger, booking)
    chosen: list[tuple[Member, Spot]] = []
    for member, spot in _in_turn(ledger, booking, given):
        if lacking <= 0:
            break
        chosen.append((member, spot))
        lacking -= spot.devices.bit_count()
    yield from _notices(ledger, booking, chosen, given)


def _has_beyond_guarantee(ledger: Ledger, queue: str) -> int:
    number = ledger.number[queue]
    return max(0, ledger.held[number][0] - ledger.guarantee[number][0]) // WHOLE


def _keep_free(ledger: Ledger, count: int) -> list[Keeping]:
    """So many free devices, of the emptiest hosts first, as something to hide."""
    found: list[Keeping] = []
    inventory = ledger.inventory
    for free in range(len(inventory.by_free) - 1, 0, -1):
        for number in bits(inventory.by_free[free]):
            if count <= 0:
                return found
            devices = first(inventory.bays[number].whole, count)
            count -= devices.bit_count()
            found.append(Keeping(WorkerShape(devices=devices.bit_count()), Spot(number, devices)))
    return found


def _will_end(ledger: Ledger, booking: Booking) -> int:
    """Whole devices of other queues' claims whose limits end them before the window opens."""
    count = 0
    for member in ledger.members.values():
        if _is_others(ledger, booking, member) and _ends_in_time(ledger, booking, member):
            count += sum(spot.devices.bit_count() for spot in member.spots if not spot.share)
    return count


def _in_turn(
    ledger: Ledger, booking: Booking, given: dict[ClaimId, list[Spot]]
) -> Iterator[tuple[Member, Spot]]:
    """Workers that may have to go: surplus first, then the lowest priority and the youngest.

    Nothing that changes from pass to pass orders them, lest a notice wander from one to another.
    """
    held = [list(amounts) for amounts in ledger.held]
    members = sorted(
        (m for m in ledger.members.values() if _may_be_asked(ledger, booking, m)), key=_rank
    )
    for is_rest in (False, True):
        for member in members:
            before = given.get(member.view.id, [])
            left = [spot for spot in member.spots if spot not in before]
            least = member.view.minimum
            spots = left[:least] if is_rest else left[least:][::-1]
            for at, spot in enumerate(spots):
                # The rest goes as a whole or not at all.
                if not (is_rest and at) and not _is_beyond(ledger, member, held):
                    break
                for queue in member.path:
                    held[queue][0] -= member.each[0]
                yield member, spot


def _rank(member: Member) -> tuple[int, float, str]:
    started_s = member.view.started_s
    return (
        member.view.priority,
        -(member.view.since_s if started_s is None else started_s),
        (member.view.id),
    )


def _may_be_asked(ledger: Ledger, booking: Booking, member: Member) -> bool:
    if not member.spots or member.view.firm or not member.view.worker.devices:
        return False
    return _is_others(ledger, booking, member) and not _ends_in_time(ledger, booking, member)


def _is_others(ledger: Ledger, booking: Booking, member: Member) -> bool:
    return ledger.number[booking.queue] not in member.path


def _ends_in_time(ledger: Ledger, booking: Booking, member: Member) -> bool:
    limit_s = must_end_s(member.view, ledger.now_s)
    return limit_s is not None and limit_s <= booking.from_s


def _is_beyond(ledger: Ledger, member: Member, held: Sequence[Sequence[int]]) -> bool:
    """Whether every queue it is in, but for its user's leaf, holds more than its guarantee."""
    return all(
        held[queue][0] > ledger.guarantee[queue][0]
        for queue in member.path
        if not ledger.is_user[queue]
    )


def _notices(
    ledger: Ledger,
    booking: Booking,
    chosen: Sequence[tuple[Member, Spot]],
    given: dict[ClaimId, list[Spot]],
) -> Iterator[Notice]:
    members = {member.view.id: member for member, _ in chosen}
    for claim_id, member in members.items():
        mine = [spot for other, spot in chosen if other is member]
        already = given.setdefault(claim_id, [])
        left = len(member.spots) - len(mine) - len(already)
        if left < member.view.minimum:
            # Less than its minimum is of no use to it: it gives back all.
            mine = [spot for spot in member.spots if spot not in already]
            left = 0
        already += mine
        yield Notice(
            claim_id=claim_id,
            workers=ledger.named(mine),
            how=_how(member, left),
            by_s=booking.from_s,
            booking=booking.id,
            reason=f"Its devices are reserved for {booking.queue}.",
        )


def _how(member: Member, left: int) -> TakeHow:
    if left:
        return TakeHow.SHRINK
    return TakeHow.HIBERNATE if member.view.can_hibernate else TakeHow.RELEASE
