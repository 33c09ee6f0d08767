"""When the devices that claims hold come back, in columns: ten thousand are asked for at once.

Made by a pass for `outlook`, or kept between passes and told of every claim that changes.
"""

from collections.abc import Iterator
from functools import reduce
from itertools import chain
from operator import or_
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from jupyter_gpupool.pool.ids import ClaimId

from .bits import bits
from .ledger import Ledger, Member
from .remaining import LEAST_S

Seconds: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = npt.NDArray[np.int64]

_Terms: TypeAlias = tuple[float, float, float, float]
"""When a claim began and its limit, NaN for none; what is expected of it, else nothing; until when
it was lent, else for ever."""

_FEW = 64
_NONE = float("nan")
_NO_TERMS: _Terms = (_NONE, _NONE, 0.0, float("inf"))


class Bundle(NamedTuple):
    """Cores and memory that a claim holds on a host.

    Attributes:
        row: Of the claim.
        host: Its number.
    """

    row: int
    host: int
    cpu: int
    memory_bytes: int


class Endings:
    """By device, which claim holds it; by claim, what its end depends on.

    Attributes:
        first: The number of each bay's first device.
        bay_of: The bay of each device.
    """

    def __init__(self, ledger: Ledger) -> None:
        sizes = [len(bay.devices) for bay in ledger.inventory.bays]
        ends = np.cumsum([0, *sizes])
        self.first: list[int] = ends[:-1].tolist()
        self.bay_of: Numbers = np.repeat(np.arange(len(sizes)), sizes)
        self._ledger = ledger
        # Which device a row holds a part of, and all of that in two columns.
        self._parts: dict[tuple[int, int], None] = {}
        self._columns: tuple[Numbers, Numbers] | None = None
        self._rows: dict[ClaimId, int] = {}
        self._spare: list[int] = []
        self._devices: dict[int, list[int]] = {}
        self._bundles: dict[int, list[Bundle]] = {}
        # Lists first: one by one, an array takes ten times as long to fill.
        holder, terms = [-1] * int(ends[-1]), list[_Terms]()
        for member in ledger.members.values():
            if member.spots or member.promised:
                self._hold(member, len(terms), holder)
                terms.append(_terms_of(member))
        self._holder: Numbers = np.array(holder, dtype=np.int64)
        # A row for each claim that holds anything, and some to spare.
        terms += [_NO_TERMS] * _FEW
        # Each of the terms by itself, so that all claims are worked out at once.
        self._terms: Seconds = np.array(terms, dtype=np.float64).T.copy()

    def note(self, member: Member) -> None:
        """Enter a claim as it is now; one that holds nothing is left out."""
        self.forget(member.view.id)
        if member.spots or member.promised:
            row = self._new_row()
            self._terms[:, row] = _terms_of(member)
            self._hold(member, row, self._holder)

    def _hold(self, member: Member, row: int, holder: "list[int] | Numbers") -> None:
        """Let the devices of a claim be those of a row."""
        spots, worker = (*member.spots, *member.promised), member.view.worker
        self._rows[member.view.id] = row
        held = self._devices[row] = []
        for spot in spots:
            before, left = self.first[spot.bay] - 1, spot.devices
            # `bits` written out, for this runs ten thousand times where books are made anew.
            while left:
                lowest = left & -left
                held.append(before + lowest.bit_length())
                left ^= lowest
        if worker.share:
            self._parts.update(((device, row), None) for device in held)
            self._columns = None
        else:
            for device in held:
                holder[device] = row
        if worker.cpu or worker.memory_bytes:
            bays = self._ledger.inventory.bays
            self._bundles[row] = [
                Bundle(row, bays[spot.bay].host, worker.cpu, worker.memory_bytes) for spot in spots
            ]

    def forget(self, claim_id: ClaimId) -> None:
        """Let a claim hold nothing."""
        row = self._rows.pop(claim_id, None)
        if row is None:
            return
        self._spare.append(row)
        self._bundles.pop(row, None)
        for device in self._devices.pop(row):
            if (device, row) in self._parts:
                del self._parts[device, row]
                self._columns = None
            elif self._holder[device] == row:
                self._holder[device] = -1

    def _new_row(self) -> int:
        if self._spare:
            return self._spare.pop()
        row = len(self._rows)
        if row == self._terms.shape[1]:
            more = np.array([_NO_TERMS] * row, dtype=np.float64).T
            self._terms = np.concatenate((self._terms, more), axis=1)
        return row

    def of_claims(self, now_s: float) -> Seconds:
        """When each claim will have given back what it holds, by row.

        As `remaining.will_have_ended_s` says, and no later than what was lent to it is due.
        """
        used = len(self._rows) + len(self._spare) + 1  # for what nobody holds there is one more
        began, limit, expected, lent = self._terms[:, :used]
        began = np.where(np.isnan(began), now_s, began)
        thought = began + expected
        again = now_s + np.maximum(LEAST_S, now_s - began)
        ends: Seconds = np.where(thought <= now_s, again, thought)
        has_limit = ~np.isnan(limit)
        if has_limit.any():
            ends = np.where(has_limit, np.maximum(now_s, began + limit), ends)
        lent_until: Seconds = np.maximum(now_s, lent)
        return np.minimum(ends, lent_until, out=ends)

    def of_devices(self, of_claims: Seconds) -> Seconds:
        """When each device can be leased: minus infinity if now, infinity if nobody can tell."""
        holder = self._holder
        ends: Seconds = np.where(holder >= 0, of_claims[holder], np.inf)
        # Of what is shared, the last one says when: what is hidden of it, whoever hides it knows.
        devices, rows = self._shared()
        ends[devices] = -np.inf
        np.maximum.at(ends, devices, of_claims[rows])
        inventory, bays = self._ledger.inventory, self._ledger.inventory.bays
        for bay in bits(inventory.closed):
            every = (1 << len(bays[bay].devices)) - 1
            for position in bits(every & ~bays[bay].leasable):
                ends[self.first[bay] + position] = np.inf
        for bay in bits(reduce(or_, inventory.by_free[1:], 0)):
            for position in bits(bays[bay].whole):
                ends[self.first[bay] + position] = -np.inf
        return ends

    def _shared(self) -> tuple[Numbers, Numbers]:
        """Devices of which somebody holds a part, and who, pair by pair."""
        if self._columns is None:
            pairs = np.fromiter(chain.from_iterable(self._parts), np.int64, 2 * len(self._parts))
            self._columns = pairs[::2], pairs[1::2]
        return self._columns

    def bundles(self) -> Iterator[Bundle]:
        """Cores and memory that are held, claim by claim."""
        return (bundle for held in self._bundles.values() for bundle in held)


def _terms_of(member: Member) -> _Terms:
    view = member.view
    return (
        _NONE if view.started_s is None else view.started_s,
        _NONE if view.time_limit_s is None else view.time_limit_s,
        0.0 if view.expected_s is None else view.expected_s,
        float("inf") if view.lent_until_s is None else view.lent_until_s,
    )
