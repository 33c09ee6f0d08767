"""A bound on waiting: whoever is blocked too long holds a reservation; others run in the gap only.

Made by a pass before anything is granted. What a reservation counts on is hidden from everybody
else, unless their time limit ends them before it starts, or they are expected to have ended and
agree to be hibernated if they have not. Source: backfill with a reservation for whoever waits
(Lifka, JSSPP'95; conservative as in Mu'alem and Feitelson, TPDS'01), oldest first, so that a wait
is bounded by T and the longest protected remainder of those that run.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeVar

from .bounds import stops
from .decisions import Constraint, Grant
from .inventory import Spot
from .ledger import Ledger, Member
from .making_room import Room
from .outlook import Gap, Keeping, Outlook
from .protection import protected_s
from .remaining import must_end_s
from .shape import WorkerShape
from .spots import place

MOST_RESERVATIONS = 16
"""How many hold one at once; whoever waits longest holds one before whoever waits less long."""

Found = TypeVar("Found")


class Standing(IntEnum):
    """What right a claim has to what it asks for; a better right is not held up by a lesser one."""

    GUARANTEED = 0
    WITHIN_SHARE = 1
    BEYOND_SHARE = 2


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
    _hindered: dict[tuple[WorkerShape, int], Constraint] = field(default_factory=dict)

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
        return self.opened(member, lambda: place(self.ledger, member, count, count), _as_they_are)

    def _own(self, member: Member, count: int) -> tuple[Spot, ...]:
        """What a claim has reserved, if it can start there now and nobody had a better right."""
        mine = next((r for r in self.reservations if r.holder is member), None)
        if mine is None or mine.gap.start_s > self.ledger.now_s:
            return ()
        if count != len(mine.gap.spots) or [kept.spot for kept in mine.hidden] != [*mine.gap.spots]:
            return ()
        self._show([mine])
        self.reservations.remove(mine)
        return mine.gap.spots

    def room(self, member: Member, search: Callable[[], Room | None]) -> Room | None:
        """Let a search see what is kept for a claim, and what it may pass by."""
        return self.opened(member, search, _spots_of) if self.reservations else search()

    def is_due(self, member: Member) -> bool:
        """Whether a claim's reservation starts now."""
        now_s = self.ledger.now_s
        return any(r.holder is member and r.gap.start_s <= now_s for r in self.reservations)

    def constraint(self, member: Member, count: int) -> Constraint:
        """What hinders a claim that was not placed: a reservation, or too few devices."""
        if not self.reservations:
            return Constraint.DEVICES
        asked = (member.view.worker, count)
        if asked not in self._hindered:
            shown = [r for r in self.reservations if r.is_hidden]
            self._show(shown)
            would_fit = place(self.ledger, member, count, count)
            self._hide(shown)
            self._hindered[asked] = Constraint.RESERVED if would_fit else Constraint.DEVICES
        return self._hindered[asked]

    def keep_until(self, from_s: float, queue: int, hidden: Sequence[Keeping]) -> None:
        """Keep what is free for a queue whose booking begins at a moment."""
        gap = Gap(from_s, tuple(keeping.spot for keeping in hidden))
        booked = Reservation(None, gap, Standing.GUARANTEED, list(hidden), queue=queue)
        self.reservations.append(booked)
        self._hide([booked])

    def close(self) -> None:
        """Show everything again, before the books are counted."""
        self._show([r for r in self.reservations if r.is_hidden])

    def opened(
        self,
        member: Member,
        look: Callable[[], Found],
        spots_of: Callable[[Found], Sequence[Spot]],
    ) -> Found:
        """Look while what a claim may have is shown; what was found stays shown."""
        passable = list(self._passable(member))
        self._show(passable)
        found = look()
        spots = spots_of(found)
        touched = [r for r in passable if _touches(r, spots)]
        if any(r.holder is member for r in passable) and spots:
            self.reservations = [r for r in self.reservations if r.holder is not member]
        for reservation in touched:
            reservation.hidden = list(_without(reservation.hidden, spots))
            self._note_loan(member, reservation)
        self._hide([r for r in passable if not (r.holder is member and spots)])
        return found

    def _passable(self, member: Member) -> Iterator[Reservation]:
        """A claim's own reservation, and those that it may pass by."""
        standing = standing_of(self.ledger, member, member.needs)
        ends_s = must_end_s(member.view, self.ledger.now_s) or float("inf")
        for reservation in self.reservations:
            if not reservation.is_hidden:
                continue
            if (
                reservation.holder is member
                or reservation.queue in member.path
                or standing < reservation.standing
                or ends_s <= reservation.gap.start_s
                or _may_be_lent(self.ledger, member, reservation)
            ):
                yield reservation

    def _note_loan(self, member: Member, reservation: Reservation) -> None:
        is_own = reservation.holder is member or reservation.queue in member.path
        if is_own or _ends_before(self.ledger, member, reservation):
            return
        if standing_of(self.ledger, member, 0) < reservation.standing:
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


def keep_for_blocked(ledger: Ledger, waiting: Iterable[Member]) -> Kept:
    """Reserve, for each claim blocked for longer than the rules allow, the earliest gap it fits."""
    kept = Kept(ledger)
    blocked = [member for member in waiting if is_blocked(ledger, member)]
    if not blocked:
        return kept
    outlook = Outlook(ledger)
    for member in sorted(blocked, key=lambda member: _turn(ledger, member))[:MOST_RESERVATIONS]:
        gap = _gap(kept, outlook, member)
        if gap is not None:
            standing = standing_of(ledger, member, member.needs)
            hidden = _hidden(ledger, outlook, member, gap)
            reservation = Reservation(member, gap, standing, hidden, is_hidden=False)
            kept.reservations.append(reservation)
            kept._hide([reservation])  # noqa: SLF001 - it is this module's own
    return kept


def is_blocked(ledger: Ledger, member: Member) -> bool:
    """Whether a claim has waited too long for its minimum, and for nothing but devices."""
    if ledger.now_s - member.view.since_s < ledger.rules.blocked_for_s:
        return False
    lacks_minimum = member.has < member.view.minimum and not member.promised
    return lacks_minimum and stops(ledger, member, member.needs) is None


def standing_of(ledger: Ledger, member: Member, count: int) -> Standing:
    """What right a claim has to so many more workers."""
    held, share = ledger.held[member.leaf], ledger.share[member.leaf]
    team = next(queue for queue in member.path if not ledger.is_user[queue])
    if _is_within(ledger.held[team], member, count, ledger.guarantee[team]):
        return Standing.GUARANTEED
    if _is_within(held, member, count, share):
        return Standing.WITHIN_SHARE
    return Standing.BEYOND_SHARE


def _turn(ledger: Ledger, member: Member) -> tuple[Standing, float, str]:
    return standing_of(ledger, member, member.needs), member.view.since_s, member.view.id


def _gap(kept: Kept, outlook: Outlook, member: Member) -> Gap | None:
    """Now, if it fits on what earlier reservations leave, else as claims end."""
    spots = place(kept.ledger, member, member.needs, member.needs)
    if spots:
        return Gap(kept.ledger.now_s, spots)
    return outlook.gap_for(member, member.needs)


def _hidden(ledger: Ledger, outlook: Outlook, member: Member, gap: Gap) -> list[Keeping]:
    keeping = outlook.keep(member, gap)
    if gap.start_s > ledger.now_s:
        return list(keeping)
    return [Keeping(member.view.worker, spot) for spot in gap.spots]


def _ends_before(ledger: Ledger, member: Member, reservation: Reservation) -> bool:
    limit_s = must_end_s(member.view, ledger.now_s)
    return limit_s is not None and limit_s <= reservation.gap.start_s


def _may_be_lent(ledger: Ledger, member: Member, reservation: Reservation) -> bool:
    """Whether a claim is thought to have ended before, and may be hibernated if it has not."""
    view, left_s, holder = member.view, reservation.gap.start_s - ledger.now_s, reservation.holder
    if holder is None:
        return False
    if view.expected_s is None or not view.can_hibernate or view.firm or member.spots:
        return False
    untouchable_s = protected_s(ledger.tree, claimant=holder.view.queue, victim=view.queue)
    return max(view.expected_s, untouchable_s) <= left_s


def _is_within(held: Sequence[int], member: Member, count: int, bound: Sequence[int]) -> bool:
    return all(
        amount == 0 or mine + amount * count <= most
        for mine, amount, most in zip(held, member.each, bound, strict=True)
    )


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
