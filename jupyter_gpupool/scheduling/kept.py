"""What is kept in a pass for those who are blocked or have booked, and who else may have it.

Made by `backfill.keep_for_blocked` and `clearing.clear_for`. What a reservation counts on is hidden
in the books: held, as far as anybody else can see. Whoever may pass by a reservation looks for room
while it is shown.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from .decisions import Constraint, Grant
from .inventory import Spot
from .ledger import Ledger, Member
from .making_room import Room
from .outlook import Gap, Keeping
from .protection import protected_s
from .remaining import must_end_s
from .shape import WorkerShape
from .spots import place
from .standing import Standing, standing_of

Found = TypeVar("Found")


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


@dataclass(slots=True)
class Kept:
    """All reservations of a pass, and who may have what is kept for them.

    Attributes:
        lent: Until when, by the claim that was placed in a gap on what is only thought.
    """

    ledger: Ledger
    reservations: list[Reservation] = field(default_factory=list)
    lent: dict[str, float] = field(default_factory=dict)
    _fitting: dict[tuple[WorkerShape, str], dict[int, bool]] = field(default_factory=dict)
    _too_big: dict[tuple[WorkerShape, str, tuple[int, ...]], int] = field(default_factory=dict)
    _alike: dict[Hashable, list[Reservation]] = field(default_factory=dict)

    def place(self, member: Member, count: int, *, is_too_big: bool) -> tuple[Spot, ...]:
        """Find spots for workers of a claim: its own, else open ones, else those it may pass by.

        Args:
            member: Whose.
            count: How many.
            is_too_big: It is known that it does not fit on what is open.
        """
        if own := self._own(member, count):
            return own
        spots = () if is_too_big else place(self.ledger, member, count, count)
        if spots or not self.reservations:
            return spots
        return self._place_in_gaps(member, count)

    def _place_in_gaps(self, member: Member, count: int) -> tuple[Spot, ...]:
        if not self._would_fit(member, count):
            return ()
        passable = self._passable(member)
        shape = member.view.worker
        # Who found no room beside the same reservations finds none later: a walk frees nothing.
        seen = (shape, member.sharer if shape.share else "", tuple(map(id, passable)))
        if not passable or count >= self._too_big.get(seen, count + 1):
            return ()
        spots = self._opened(
            member, passable, lambda: place(self.ledger, member, count, count), _as_they_are
        )
        if not spots:
            self._too_big[seen] = count
        return spots

    def _own(self, member: Member, count: int) -> tuple[Spot, ...]:
        """What a claim has reserved, if it can start there now and nobody had a better right."""
        mine = next((r for r in self.reservations if r.holder is member), None)
        if mine is None or mine.gap.start_s > self.ledger.now_s:
            return ()
        if count != len(mine.gap.spots) or [kept.spot for kept in mine.hidden] != [*mine.gap.spots]:
            return ()
        self._show([mine])
        self._drop(mine)
        return mine.gap.spots

    def room(self, member: Member, search: Callable[[], Room | None]) -> Room | None:
        """Let a search see what is kept for a claim, and what it may pass by."""
        if not self.reservations:
            return search()
        return self._opened(member, self._passable(member), search, _spots_of)

    def is_due(self, member: Member) -> bool:
        """Whether a claim's reservation starts now."""
        now_s = self.ledger.now_s
        return any(r.holder is member and r.gap.start_s <= now_s for r in self.reservations)

    def constraint(self, member: Member, count: int) -> Constraint:
        """What hinders a claim that was not placed: a reservation, or too few devices."""
        if not self.reservations or not self._would_fit(member, count):
            return Constraint.DEVICES
        return Constraint.RESERVED

    def _would_fit(self, member: Member, count: int) -> bool:
        """Whether there would be room if nothing were kept for anybody."""
        shape = member.view.worker
        seen = (shape, member.sharer if shape.share else "")
        if count not in self._fitting.setdefault(seen, {}):
            shown = [r for r in self.reservations if r.is_hidden]
            self._show(shown)
            self._fitting[seen][count] = bool(place(self.ledger, member, count, count))
            self._hide(shown)
        return self._fitting[seen][count]

    def keep(self, reservation: Reservation) -> None:
        """Keep what a reservation counts on from everybody else."""
        self.reservations.append(reservation)
        self._alike.clear()
        self._hide([reservation])

    def keep_until(self, from_s: float, queue: int, hidden: Sequence[Keeping]) -> None:
        """Keep what is free for a queue whose booking begins at a moment."""
        gap = Gap(from_s, tuple(keeping.spot for keeping in hidden))
        booked = Reservation(None, gap, Standing.GUARANTEED, list(hidden), queue=queue)
        self.keep(booked)

    def close(self) -> None:
        """Show everything again, before the books are counted."""
        self._show([r for r in self.reservations if r.is_hidden])

    def _opened(
        self,
        member: Member,
        passable: Sequence[Reservation],
        look: Callable[[], Found],
        spots_of: Callable[[Found], Sequence[Spot]],
    ) -> Found:
        """Look while what a claim may have is shown; what was found stays shown."""
        self._show(passable)
        found = look()
        spots = spots_of(found)
        touched = [r for r in passable if _touches(r, spots)]
        for reservation in touched:
            reservation.hidden = list(_without(reservation.hidden, spots))
            self._note_loan(member, reservation)
        for served in [r for r in passable if r.holder is member and spots]:
            self._drop(served)
        self._hide([r for r in passable if r in self.reservations])
        return found

    def _drop(self, reservation: Reservation) -> None:
        self.reservations.remove(reservation)
        self._alike.clear()

    def _passable(self, member: Member) -> list[Reservation]:
        """A claim's own reservation, and those that it may pass by; the same for all like it."""
        view, standing = member.view, standing_of(self.ledger, member, member.needs)
        if member.spots or self._knows_queue_of(member):
            return self._passed_by(member, standing)
        terms = (view.time_limit_s, view.expected_s, view.can_hibernate, view.firm)
        # Only with a loan or a booking does it matter which queue it is.
        alike = (standing, *terms, member.leaf if self._asks_for_queue(member) else -1)
        if alike not in self._alike:
            self._alike[alike] = self._passed_by(member, standing)
        return self._alike[alike]

    def _asks_for_queue(self, member: Member) -> bool:
        has_bookings = any(reservation.queue >= 0 for reservation in self.reservations)
        return has_bookings or (self.ledger.protects and member.view.expected_s is not None)

    def _knows_queue_of(self, member: Member) -> bool:
        holders = (reservation.holder for reservation in self.reservations)
        return any(holder is not None and holder.leaf == member.leaf for holder in holders)

    def _passed_by(self, member: Member, standing: Standing) -> list[Reservation]:
        ends_s = must_end_s(member.view, self.ledger.now_s)
        return [
            reservation
            for reservation in self.reservations
            if (standing < reservation.standing and not _is_outranked(member, reservation))
            or (ends_s is not None and ends_s <= reservation.gap.start_s)
            or reservation.queue in member.path
            or _is_its_own(member, reservation)
            or _may_be_lent(self.ledger, member, reservation)
        ]

    def _note_loan(self, member: Member, reservation: Reservation) -> None:
        is_own = _is_its_own(member, reservation) or reservation.queue in member.path
        if is_own or _ends_before(self.ledger, member, reservation):
            return
        if standing_of(self.ledger, member, member.needs) < reservation.standing:
            return
        start_s = reservation.gap.start_s
        self.lent[member.view.id] = min(start_s, self.lent.get(member.view.id, start_s))

    def as_lent(self, grant: Grant) -> Grant:
        """A grant with the moment until which its workers are lent, if they are."""
        until_s = self.lent.get(grant.claim_id)
        return grant if until_s is None else replace(grant, lent_until_s=until_s)

    def _show(self, reservations: Iterable[Reservation]) -> None:
        for reservation in reservations:
            for worker, spot in reservation.hidden:
                self.ledger.inventory.give(worker, spot)
            reservation.is_hidden = False

    def _hide(self, reservations: Iterable[Reservation]) -> None:
        inventory = self.ledger.inventory
        for reservation in reservations:
            sharer = "" if reservation.holder is None else reservation.holder.sharer
            reservation.hidden = [
                kept
                for kept in reservation.hidden
                if inventory.hold(kept.worker, kept.spot, sharer)
            ]
            reservation.is_hidden = True


def _is_its_own(member: Member, reservation: Reservation) -> bool:
    """Whether a claim holds a reservation, or could take it from its queue's claim by rank."""
    holder = reservation.holder
    if holder is None or holder.leaf != member.leaf:
        return False
    return holder is member or holder.view.priority < member.view.priority


def _is_outranked(member: Member, reservation: Reservation) -> bool:
    """Whether the holder is of the claim's own queue and of no lower rank: it was there first.

    What is left of a queue's share is enough for small claims and not for a gang: they would pass
    it by for ever.
    """
    holder = reservation.holder
    if holder is None or holder.leaf != member.leaf:
        return False
    return holder.view.priority >= member.view.priority


def _ends_before(ledger: Ledger, member: Member, reservation: Reservation) -> bool:
    limit_s = must_end_s(member.view, ledger.now_s)
    return limit_s is not None and limit_s <= reservation.gap.start_s


def _may_be_lent(ledger: Ledger, member: Member, reservation: Reservation) -> bool:
    """Whether a claim is thought to have ended before, and may be hibernated if it has not."""
    view, left_s, holder = member.view, reservation.gap.start_s - ledger.now_s, reservation.holder
    if holder is None or view.expected_s is None or view.expected_s > left_s:
        return False
    if not view.can_hibernate or view.firm or member.spots:
        return False
    claimant, victim = holder.view.queue, view.queue
    return protected_s(ledger.tree, claimant=claimant, victim=victim) <= left_s


def _touches(reservation: Reservation, spots: Sequence[Spot]) -> bool:
    return any(_overlap(kept.spot, spot) for kept in reservation.hidden for spot in spots)


def _overlap(one: Spot, other: Spot) -> bool:
    return one.bay == other.bay and bool(one.devices & other.devices)


def _without(hidden: Iterable[Keeping], spots: Sequence[Spot]) -> Iterator[Keeping]:
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


def _as_they_are(spots: tuple[Spot, ...]) -> tuple[Spot, ...]:
    return spots


def _spots_of(room: Room | None) -> Sequence[Spot]:
    if room is None:
        return ()
    return (*room.spots, *(spot for _, to in room.moved for spot in to))
