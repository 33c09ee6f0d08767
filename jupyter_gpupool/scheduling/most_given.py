"""What others could give at the very most, by kind of device: counted before anybody is asked.

Sums are kept by `victims.Holders`; `reclaiming` and `outranking` ask. Most who look for room in a
full pool look in vain, and a search finds that out only once it has asked everybody. What is told
here is never too little: who needs more need not look. Nothing is counted before it is asked for:
near queues are often enough.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from .ledger import Ledger, Member
from .pieces import Piece
from .shape import WorkerShape

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId

Held: TypeAlias = "Mapping[int, Mapping[ClaimId, Member]]"
"""The claims of each queue that hold something."""


class MostGiven:
    """Devices that the claims of a queue, and of all below it, hold, by the number of their kind.

    Args:
        ledger: The books.
        held: Whose claims count; looked at again whenever a queue was forgotten.
    """

    def __init__(self, ledger: Ledger, held: Held) -> None:
        self._ledger, self._held = ledger, held
        self._of: dict[int, dict[int, int]] = {}
        self._oldest_s: dict[int, float] = {}
        self._kinds = ledger.inventory.layout.kinds

    def forget(self, path: Iterable[int]) -> None:
        """Something in a queue has changed, and so in all above it."""
        for queue in path:
            self._of.pop(queue, None)
            self._oldest_s.pop(queue, None)

    def devices(self, queue: int, shape: WorkerShape) -> int:
        """Devices in and below a queue that a shape accepts.

        A part of one counts as one, for it may be what keeps the device from somebody.
        """
        layout = self._ledger.inventory.layout
        if layout.kinds is not self._kinds:
            self._of = {}
            self._kinds = layout.kinds
        accepted = layout.accepting_kinds(shape)
        return sum(count for kind, count in self._held_by(queue).items() if kind in accepted)

    def _held_by(self, queue: int) -> Mapping[int, int]:
        found = self._of.get(queue)
        if found is None:
            found = self._of[queue] = {}
            bays = self._ledger.inventory.bays
            for member in self._held.get(queue, {}).values():
                each = member.view.worker.devices or 1
                for spot in member.spots:
                    kind = bays[spot.bay].kind
                    found[kind] = found.get(kind, 0) + each
            for child in self._ledger.children[queue]:
                for kind, count in self._held_by(child).items():
                    found[kind] = found.get(kind, 0) + count
        return found

    def oldest_s(self, queue: int) -> float:
        """When whoever runs longest in or below a queue started; infinite if nobody does."""
        found = self._oldest_s.get(queue)
        if found is None:
            members = self._held.get(queue, {}).values()
            own = [-inf if m.view.started_s is None else m.view.started_s for m in members]
            below = [self.oldest_s(child) for child in self._ledger.children[queue]]
            found = self._oldest_s[queue] = min([*own, *below], default=inf)
        return found


def might_be_enough(ledger: Ledger, claimant: Member, given: Iterable[int]) -> bool:
    """Whether a claim might fit if so many devices of use to it were free besides: only counted.

    Where only parts of devices are asked for, it always might.

    Args:
        ledger: The books.
        claimant: Who needs room.
        given: What each of some others could give; no more of them are counted than are needed.
    """
    inventory, shape = ledger.inventory, claimant.view.worker
    lacking = claimant.needs * shape.devices - inventory.free_among(inventory.accepting(shape))
    others = iter(given)
    while lacking > 0:
        more = next(others, None)
        if more is None:
            return False
        lacking -= more
    return True


def needs_devices_alone(ledger: Ledger, claimant: Member) -> bool:
    """Whether neither cores nor memory nor any limit counts for a claim."""
    shape = claimant.view.worker
    return not (shape.cpu or shape.memory_bytes or ledger.may_be_stopped(claimant))


def devices_in(ledger: Ledger, claimant: Member, pieces: Iterable[Piece]) -> Iterator[int]:
    """Devices of use to a claim in each of these pieces; parts of one count as one each."""
    accepted = ledger.inventory.accepting(claimant.view.worker)
    for piece in pieces:
        yield sum(spot.devices.bit_count() for spot in piece.spots if accepted >> spot.bay & 1)
