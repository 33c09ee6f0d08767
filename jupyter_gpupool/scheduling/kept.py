"""What is kept in a pass for those who are blocked or have booked, and who else may have it.

Made by `backfill.keep_for_blocked` and `clearing.clear_for`. What a reservation counts on is hidden
in the books: held, as far as anybody else can see. Whoever may pass by a reservation (`passing_by`)
looks for room while it is shown.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from jupyter_gpupool.pool.ids import ClaimId

from .decisions import Constraint, Grant
from .inventory import Spot
from .ledger import Ledger, Member
from .making_room import Room
from .outlook import Gap, Keeping
from .passing_by import Reservation, is_loan, may_pass_by, touches, without
from .spots import place
from .standing import Standing, standing_of

__all__ = ["Kept", "Reservation"]

Found = TypeVar("Found")


class _Passable(NamedTuple):
    """Reservations that a claim may pass by, with their places among all as bits."""

    reservations: list[Reservation]
    which: int


_NOBODYS = _Passable([], 0)
"""What is open to everybody."""


@dataclass(slots=True)
class Kept:
    """All reservations of a pass, and who may have what is kept for them.

    Attributes:
        explains: Somebody will hear what hinders those who find no room.
        lent: Until when, by the claim that was placed in a gap on what is only thought.
    """

    ledger: Ledger
    explains: bool = True
    reservations: list[Reservation] = field(default_factory=list)
    lent: dict[str, float] = field(default_factory=dict)
    _of: dict[ClaimId, Reservation] = field(default_factory=dict)
    _leaves: set[int] = field(default_factory=set)
    _is_booked: bool = False
    _fitting: dict[tuple[int, int], bool] = field(default_factory=dict)
    _too_big: dict[tuple[int, int], int] = field(default_factory=dict)
    _enough: dict[tuple[int, int], int] = field(default_factory=dict)
    _alike: dict[Hashable, _Passable] = field(default_factory=dict)
    # The same for those of whom nothing counts but their standing, which are as good as all.
    _plain: dict[Standing, _Passable] = field(default_factory=dict)

    def place(self, member: Member, count: int, *, is_too_big: bool) -> tuple[Spot, ...]:
        """Find spots for workers of a claim: its own, else open ones, else those it may pass by.

        Args:
            member: Whose.
            count: How many.
            is_too_big: It is known that it does not fit on what is open.
        """
        if member.view.id in self._of and (own := self._own(member, count)):
            return own
        spots = () if is_too_big else place(self.ledger, member, count, count)
        if spots or not self.reservations:
            return spots
        return self._place_in_gaps(member, count)

    def _place_in_gaps(self, member: Member, count: int) -> tuple[Spot, ...]:
        passable = self._passable(member)
        # Who found no room beside the same reservations finds none later: a walk frees nothing.
        seen = (member.alike, passable.which)
        if not passable.which or count >= self._too_big.get(seen, count + 1):
            return ()
        if not self._would_fit(member, count):
            return ()
        spots = self._opened(
            member,
            passable.reservations,
            lambda: place(self.ledger, member, count, count),
            _as_they_are,
        )
        if not spots:
            self._too_big[seen] = count
        return spots

    def _own(self, member: Member, count: int) -> tuple[Spot, ...]:
        """What a claim has reserved, if it can start there now and nobody had a better right."""
        mine = self._of.get(member.view.id)
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
        return self._opened(member, self._passable(member).reservations, search, _spots_of)

    def is_due(self, member: Member) -> bool:
        """Whether a claim's reservation starts now."""
        mine = self._of.get(member.view.id)
        return mine is not None and mine.gap.start_s <= self.ledger.now_s

    def constraint(self, member: Member, count: int) -> Constraint:
        """What hinders a claim that was not placed: a reservation, or too few devices."""
        if not self.explains or not self.reservations or not self._would_fit(member, count):
            return Constraint.DEVICES
        return Constraint.RESERVED

    def _would_fit(self, member: Member, count: int) -> bool:
        """Whether there would be room if nothing were kept for anybody."""
        seen = (member.alike, count)
        found = self._fitting.get(seen)
        if found is None:
            found = self._fitting[seen] = self._opens_a_device(member) or self._fits(member, count)
        return found

    def _opens_a_device(self, member: Member) -> bool:
        """Whether any device is there for a claim of one part, wholly free or kept."""
        if not _is_a_part(member):
            return False
        accepted = self.ledger.inventory.accepting(member.view.worker)
        # One after the other, for most often the first one would do.
        return self._has_open_device(accepted) or any(
            accepted >> spot.bay & 1
            for reservation in self.reservations
            for _, spot in reservation.hidden
            if spot.devices and not spot.share
        )

    def _has_open_device(self, bays: int) -> bool:
        return any(free & bays for free in self.ledger.inventory.by_free[1:])

    def _fits(self, member: Member, count: int) -> bool:
        shown = [r for r in self.reservations if r.is_hidden]
        self._show(shown)
        found = bool(place(self.ledger, member, count, count))
        self._hide(shown)
        return found

    # What is kept

    def keep(self, reservation: Reservation) -> None:
        """Keep what a reservation counts on from everybody else."""
        self.reservations.append(reservation)
        if reservation.holder is not None:
            self._of[reservation.holder.view.id] = reservation
            self._leaves.add(reservation.holder.leaf)
        self._is_booked |= reservation.queue >= 0
        self._forget()
        self._hide([reservation])

    def keep_until(self, from_s: float, queue: int, hidden: Sequence[Keeping]) -> None:
        """Keep what is free for a queue whose booking begins at a moment."""
        gap = Gap(from_s, tuple(keeping.spot for keeping in hidden))
        booked = Reservation(None, gap, Standing.GUARANTEED, list(hidden), queue=queue)
        self.keep(booked)

    def _drop(self, reservation: Reservation) -> None:
        self.reservations.remove(reservation)
        if reservation.holder is not None:
            del self._of[reservation.holder.view.id]
        self._leaves = {other.holder.leaf for other in self.reservations if other.holder}
        self._is_booked = any(other.queue >= 0 for other in self.reservations)
        self._forget()

    def _forget(self) -> None:
        self._alike.clear()
        self._plain.clear()
        self._too_big.clear()
        self._enough.clear()

    def freed(self) -> None:
        """Somebody has given something back: who found no room may find some now."""
        self._too_big.clear()
        self._fitting.clear()

    def close(self) -> None:
        """Show everything again, before the books are counted."""
        self._show([r for r in self.reservations if r.is_hidden])

    def reopen(self) -> None:
        """Keep again what was shown by `close`."""
        self._hide([r for r in self.reservations if not r.is_hidden])

    def is_open_to(self, member: Member, count: int) -> bool:
        """Whether so many workers of a claim find room on what is kept for nobody."""
        accepted = self.ledger.inventory.accepting(member.view.worker)
        if _is_a_part(member) and self._has_open_device(accepted):
            return True
        return self._fits_beside(member, count, _NOBODYS)

    def might_place(self, member: Member, count: int) -> bool:
        """Whether `place` would find spots now; changes nothing."""
        if self.is_due(member) or self._fits_beside(member, count, _NOBODYS):
            return True
        passable = self._passable(member)
        return bool(passable.which) and self._fits_beside(member, count, passable)

    def _fits_beside(self, member: Member, count: int, passable: _Passable) -> bool:
        seen = (member.alike, passable.which)
        if count <= self._enough.get(seen, 0):
            return True
        if count >= self._too_big.get(seen, count + 1):
            return False
        self._show(passable.reservations)
        found = bool(place(self.ledger, member, count, count))
        self._hide(passable.reservations)
        (self._enough if found else self._too_big)[seen] = count
        return found

    # Looking while it is shown

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
        for reservation in [r for r in passable if touches(r, spots)] if spots else ():
            reservation.hidden = list(without(reservation.hidden, spots))
            self._note_loan(member, reservation)
        mine = self._of.get(member.view.id)
        if spots and mine is not None and mine in passable:
            self._drop(mine)
            passable = [reservation for reservation in passable if reservation is not mine]
        self._hide(passable)
        return found

    def _passable(self, member: Member) -> _Passable:
        """A claim's own reservation, and those that it may pass by; the same for all like it."""
        view, standing = member.view, standing_of(self.ledger, member, member.needs)
        if member.spots or member.leaf in self._leaves:
            return self._passed_by(member, standing)
        found = self._plain.get(standing)
        if found is not None and view.time_limit_s is None and view.expected_s is None:
            return found
        # Only with a loan or a booking does it matter which queue it is.
        asks_for_queue = self._is_booked or (self.ledger.protects and view.expected_s is not None)
        leaf = member.leaf if asks_for_queue else -1
        alike = (standing, view.time_limit_s, view.expected_s, view.can_hibernate, view.firm, leaf)
        found = self._alike.get(alike)
        if found is None:
            found = self._alike[alike] = self._passed_by(member, standing)
        if not self._is_booked and view.time_limit_s is None and view.expected_s is None:
            self._plain[standing] = found
        return found

    def _passed_by(self, member: Member, standing: Standing) -> _Passable:
        found, which = list[Reservation](), 0
        for place_among_all, reservation in enumerate(self.reservations):
            if may_pass_by(self.ledger, member, standing, reservation):
                found.append(reservation)
                which |= 1 << place_among_all
        return _Passable(found, which)

    def _note_loan(self, member: Member, reservation: Reservation) -> None:
        if is_loan(self.ledger, member, reservation):
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


def _is_a_part(member: Member) -> bool:
    """Whether a claim wants one part of a device, for which nothing else of a host counts."""
    shape = member.view.worker
    return shape.share > 0 and not (shape.cpu or shape.memory_bytes) and member.needs == 1


def _as_they_are(spots: tuple[Spot, ...]) -> tuple[Spot, ...]:
    return spots


def _spots_of(room: Room | None) -> Sequence[Spot]:
    if room is None:
        return ()
    return (*room.spots, *(spot for _, to in room.moved for spot in to))
