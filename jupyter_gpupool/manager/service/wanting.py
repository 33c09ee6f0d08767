"""Who waits for devices such as a claim holds: asked by rules on idle claims.

Worked out once a kind of device and second, for a thousand claims may wait and as many be idle.
What keeps a claim waiting is the last pass's word; of one that it did not explain, that it waits.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final

from jupyter_gpupool.pool.claim import WAITING
from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.scheduling.decisions import Constraint, Waiting

from .records import ClaimRecord

MOST_NAMED: Final = 20
"""So many who wait are named: more tell nobody more."""
_FRESH_FOR_S = 1.0
_FOR_DEVICES = frozenset(
    {Constraint.DEVICES, Constraint.GANG, Constraint.RESERVED, Constraint.FREEING}
)
"""Whoever waits for anything else gets nothing by another's device."""

Waits = Mapping[ClaimId, Waiting]
Claims = Mapping[ClaimId, ClaimRecord]


class Wanting:
    """Those who wait at one moment, and what for."""

    def __init__(self, claims: Claims, waits: Waits) -> None:
        self._claims = claims
        self._waits = waits
        self._waiting: tuple[ClaimRecord, ...] | None = None
        self._known: dict[tuple[str, int], tuple[ClaimId, ...]] = {}

    def for_any_of(self, devices: Iterable[Device]) -> tuple[ClaimId, ...]:
        """The first who wait for such devices, in line."""
        kinds = {(device.model.lower(), device.memory_bytes) for device in devices}
        found = dict.fromkeys(each for kind in sorted(kinds) for each in self._for_kind(kind))
        return tuple(found)[:MOST_NAMED]

    def _for_kind(self, kind: tuple[str, int]) -> tuple[ClaimId, ...]:
        if self._waiting is None:
            waiting = (r for r in self._claims.values() if self._waits_for_devices(r))
            self._waiting = tuple(sorted(waiting, key=lambda r: r.claim.wanted_since))
        if kind not in self._known:
            fits = (record.claim.id for record in self._waiting if _would_do(record, kind))
            self._known[kind] = tuple(islice(fits, MOST_NAMED))
        return self._known[kind]

    def _waits_for_devices(self, record: ClaimRecord) -> bool:
        said = self._waits.get(record.claim.id)
        is_for_devices = said is None or said.constraint in _FOR_DEVICES
        return record.claim.phase in WAITING and is_for_devices


class WhoWaits:
    """Looks anew when a second is over.

    Args:
        claims: The claims of the books.
        waits: Gives what the last pass said.
        monotonic: A clock in seconds.
    """

    def __init__(
        self, claims: Claims, waits: Callable[[], Waits], monotonic: Callable[[], float]
    ) -> None:
        self._claims = claims
        self._waits = waits
        self._monotonic = monotonic
        self._made_s = monotonic()
        self._wanting = Wanting(claims, waits())

    def now(self) -> Wanting:
        """Those who wait, as of the last second."""
        now_s = self._monotonic()
        if now_s - self._made_s >= _FRESH_FOR_S:
            self._made_s, self._wanting = now_s, Wanting(self._claims, self._waits())
        return self._wanting


def _would_do(record: ClaimRecord, kind: tuple[str, int]) -> bool:
    request = record.claim.request
    model, memory_bytes = kind
    return request.model.lower() in model and request.memory_bytes <= memory_bytes
