"""Who has to leave so that booked devices are empty when their window opens, and by when.

Asked in each pass before grants: what is free is kept from whoever would still hold it then, and
where that is too little, claims beyond their queues' guarantees get notice, which a later pass
repeats as long as it holds. Claims that end in time are let end; elastic ones shrink; only then
is anybody hibernated. While the window is open, what its queue does not hold yet stays kept for it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from jupyter_gpupool.pool.ids import ClaimId

from .amounts import WHOLE_DEVICE
from .bits import bits, first
from .decisions import Notice, TakeHow
from .inventory import Spot
from .kept import Kept
from .ledger import Ledger, Member
from .outlook import Keeping
from .remaining import must_end_s
from .reservations import LEAD_S, Booking
from .shape import Obstacle, WorkerShape


@dataclass(slots=True)
class _Clearing:
    """What one pass does for bookings.

    Attributes:
        given: What claims have to give back so far.
        held_open: Free devices kept for an open window, by queue, with the moment it closes.
        ending: Devices of claims that end in time, or are being freed, that earlier bookings
            count on.
    """

    ledger: Ledger
    bookings: tuple[Booking, ...]
    kept: Kept
    given: dict[ClaimId, list[Spot]] = field(default_factory=dict)
    held_open: dict[str, tuple[int, float]] = field(default_factory=dict)
    ending: int = 0


def clear_for(ledger: Ledger, bookings: Iterable[Booking], kept: Kept) -> tuple[Notice, ...]:
    """Keep and clear devices for bookings whose windows are open or open soon.

    Args:
        ledger: The books, before anything is granted; guarantees are raised by open bookings.
        bookings: All of them, in order of their windows.
        kept: Reservations of this pass; devices for the bookings are added.
    """
    known = tuple(booking for booking in bookings if booking.queue in ledger.number)
    clearing, now_s = _Clearing(ledger, known, kept), ledger.now_s
    for queue in sorted({booking.queue for booking in known if booking.is_open(now_s)}):
        _keep_open(clearing, queue)
    soon = [b for b in known if now_s < b.from_s <= now_s + LEAD_S]
    return tuple(notice for booking in soon for notice in _clear(clearing, booking))


def _keep_open(clearing: _Clearing, queue: str) -> None:
    """Keep what a queue has booked for now and does not hold yet."""
    ledger, now_s = clearing.ledger, clearing.ledger.now_s
    mine = [b for b in clearing.bookings if b.queue == queue and b.is_open(now_s)]
    lacking = sum(booking.devices for booking in mine) - _held(ledger, queue)
    free = _keep_free(ledger, lacking)
    if free:
        clearing.kept.keep_until(now_s, ledger.number[queue], free)
        count = sum(keeping.spot.devices.bit_count() for keeping in free)
        clearing.held_open[queue] = count, min(booking.until_s for booking in mine)


def _clear(clearing: _Clearing, booking: Booking) -> Iterator[Notice]:
    ledger = clearing.ledger
    lacking = booking.devices - _at_hand(clearing, booking)
    free = _keep_free(ledger, lacking)
    if free:
        clearing.kept.keep_until(booking.from_s, ledger.number[booking.queue], free)
    lacking -= sum(keeping.spot.devices.bit_count() for keeping in free)
    ending = max(0, min(lacking, _will_come(ledger, booking) - clearing.ending))
    clearing.ending += ending
    lacking -= ending
    chosen: list[tuple[Member, Spot]] = []
    for member, spot in _in_turn(ledger, booking, clearing.given):
        if lacking <= 0:
            break
        chosen.append((member, spot))
        lacking -= spot.devices.bit_count()
    yield from _notices(ledger, booking, chosen, clearing.given)


def _at_hand(clearing: _Clearing, booking: Booking) -> int:
    """Devices that a queue will have for a booking without anybody else's leaving.

    Those are what it holds, or are kept for it, unless an earlier booking of the same queue is
    still open then.
    """
    at_s, queue = booking.from_s, booking.queue
    earlier = clearing.bookings[: clearing.bookings.index(booking)]
    taken = sum(b.devices for b in earlier if b.queue == queue and b.is_open(at_s))
    count, until_s = clearing.held_open.get(queue, (0, 0.0))
    has = _held(clearing.ledger, queue) + (count if until_s <= at_s else 0)
    return max(0, has - taken)


def _held(ledger: Ledger, queue: str) -> int:
    """Whole devices that a queue and those below it hold: what it has booked includes them."""
    return ledger.held[ledger.number[queue]][0] // WHOLE_DEVICE


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


def _will_come(ledger: Ledger, booking: Booking) -> int:
    """Whole devices that will be free before the window opens though nobody else is asked.

    They are being freed and promised to nobody, or their claims' limits end them in time.
    """
    count = _being_freed(ledger)
    for member in ledger.members.values():
        if _is_others(ledger, booking, member) and _ends_in_time(ledger, booking, member):
            count += sum(spot.devices.bit_count() for spot in member.spots if not spot.share)
    return count


def _being_freed(ledger: Ledger) -> int:
    views = (device for bay in ledger.inventory.bays for device in bay.devices)
    freeing = sum(view.obstacle is Obstacle.FREEING for view in views)
    promised = sum(
        spot.devices.bit_count() for member in ledger.members.values() for spot in member.promised
    )
    return max(0, freeing - promised)


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
