"""When the devices that claims hold come back, in columns: ten thousand are asked for at once.

Made by a pass for `outlook`, or kept between passes and told of every claim that changes.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from jupyter_gpupool.pool.ids import ClaimId

from .amounts import WHOLE_DEVICE
from .bits import bits
from .ledger import Ledger, Member
from .remaining import LEAST_S

Seconds: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = npt.NDArray[np.int64]

_Terms: TypeAlias = tuple[float, float, float, float]
"""When a claim began, its limit, what is expected of it, until when it was lent; NaN for none."""

_FEW = 64
_NONE = float("nan")
_NO_TERMS: _Terms = (_NONE, _NONE, _NONE, _NONE)


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
        self._parts: dict[int, dict[int, int]] = {}
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
        self._terms: Seconds = np.array(terms, dtype=np.float64)

    def note(self, member: Member) -> None:
        """Enter a claim as it is now; one that holds nothing is left out."""
        self.forget(member.view.id)
        if member.spots or member.promised:
            row = self._new_row()
            self._terms[row] = _terms_of(member)
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
            for device in held:
                sharers = self._parts.setdefault(device, {})
                sharers[row] = sharers.get(row, 0) + worker.share
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
            sharers = self._parts.get(device)
            if sharers is None or row not in sharers:
                if self._holder[device] == row:
                    self._holder[device] = -1
                continue
            del sharers[row]
            if not sharers:
                del self._parts[device]

    def _new_row(self) -> int:
        if self._spare:
            return self._spare.pop()
        row = len(self._rows)
        if row == len(self._terms):
            self._terms = np.concatenate((self._terms, [_NO_TERMS] * len(self._terms)))
        return row

    def of_claims(self, now_s: float) -> Seconds:
        """When each claim will have given back what it holds, by row.

        As `remaining.will_have_ended_s` says, and no later than what was lent to it is due.
        """
        began, limit, expected, lent = self._terms.T
        began = np.where(np.isnan(began), now_s, began)
        thought = np.where(np.isnan(expected), began, began + expected)
        again = now_s + np.maximum(LEAST_S, now_s - began)
        ends = np.where(thought <= now_s, again, thought)
        ends = np.where(np.isnan(limit), ends, np.maximum(now_s, began + limit))
        return np.where(np.isnan(lent), ends, np.minimum(ends, np.maximum(now_s, lent)))

    def of_devices(self, of_claims: Seconds) -> Seconds:
        """When each device can be leased: minus infinity if now, infinity if nobody can tell."""
        holder = self._holder
        ends: Seconds = np.where(holder >= 0, of_claims[holder], np.inf)
        bays = self._ledger.inventory.bays
        for device, sharers in self._parts.items():
            bay = int(self.bay_of[device])
            left = bays[bay].parts.get(device - self.first[bay], 0)
            if left + sum(sharers.values()) >= WHOLE_DEVICE:
                ends[device] = max(of_claims[row] for row in sharers)
        for first, bay_ in zip(self.first, bays, strict=True):
            # Most bays of a full pool have neither.
            for position in bits(((1 << len(bay_.devices)) - 1) & ~bay_.leasable):
                ends[first + position] = np.inf
            for position in bits(bay_.whole):
                ends[first + position] = -np.inf
        return ends

    def bundles(self) -> Iterator[Bundle]:
        """Cores and memory that are held, claim by claim."""
        return (bundle for held in self._bundles.values() for bundle in held)


def _terms_of(member: Member) -> _Terms:
    view = member.view
    return (
        _NONE if view.started_s is None else view.started_s,
        _NONE if view.time_limit_s is None else view.time_limit_s,
        _NONE if view.expected_s is None else view.expected_s,
        _NONE if view.lent_until_s is None else view.lent_until_s,
    )
