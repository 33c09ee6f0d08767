"""The one table of all processes the agent keeps; every change of it goes through `put`.

Owned by `host.HostAgent`, read by everyone in the agent. `changed` is called after each change, so
that the next turn can look at what has to be done and the manager hears of it. Rows are found by
their claim and by their devices without a look at all of them, for that is done for each line that
a child says.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, LeaseId
from jupyter_gpupool.protocol.launch import Hello

from .keys import ProcessKey
from .seen import Seen, Stage

_I = TypeVar("_I")
_Index = dict[_I, dict[ProcessKey, None]]


class Table(Mapping[ProcessKey, Seen]):
    """All processes by key. Reads like a mapping."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._rows: dict[ProcessKey, Seen] = {}
        self._of_claim: _Index[ClaimId] = {}
        self._on_device: _Index[DeviceUuid] = {}
        self._changed = changed

    def __getitem__(self, key: ProcessKey) -> Seen:
        return self._rows[key]

    def __iter__(self) -> Iterator[ProcessKey]:
        return iter(tuple(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, seen: Seen) -> None:
        """Keep a process, or what became of it."""
        before = self._rows.get(seen.key)
        if before == seen:
            return
        self._rows[seen.key] = seen
        _enter(self._of_claim, seen.key.claim_id, seen.key)
        devices = () if before is None else before.devices
        if devices != seen.devices:
            self._leave_devices(seen.key, devices)
            for device in seen.devices:
                _enter(self._on_device, device, seen.key)
        self._changed()

    def forget(self, key: ProcessKey) -> None:
        """Nothing of it is left."""
        seen = self._rows.pop(key, None)
        if seen is not None:
            _leave(self._of_claim, key.claim_id, key)
            self._leave_devices(key, seen.devices)
            self._changed()

    def named(self, hello: Hello) -> Seen | None:
        """The process that may call itself so: of several starts, the one that is not going."""
        found = [
            row
            for row in self.of_claim(hello.claim_id)
            if row.key.role is hello.role and (row.key.lease_id or "") == hello.lease_id
        ]
        found.sort(key=lambda row: (row.stage in (Stage.ALIVE, Stage.FORKING), row.key.start))
        return found[-1] if found else None

    def of_claim(self, claim_id: str) -> tuple[Seen, ...]:
        """The processes of a claim, of all its starts."""
        keys = self._of_claim.get(ClaimId(claim_id), ())
        return tuple(self._rows[key] for key in keys)

    def on_device(self, device: DeviceUuid) -> tuple[Seen, ...]:
        """The processes of leases on a device."""
        return tuple(self._rows[key] for key in self._on_device.get(device, ()))

    def leases_on(self, device: DeviceUuid) -> tuple[LeaseId, ...]:
        """Leases that this device is not free of."""
        rows = (row for row in self.on_device(device) if row.may_use_device)
        return tuple(row.key.lease_id for row in rows if row.key.lease_id is not None)

    def claims(self) -> frozenset[ClaimId]:
        """Claims of which anything is left here."""
        return frozenset(self._of_claim)

    def _leave_devices(self, key: ProcessKey, devices: tuple[DeviceUuid, ...]) -> None:
        for device in devices:
            _leave(self._on_device, device, key)


def _enter(index: _Index[_I], place: _I, key: ProcessKey) -> None:
    index.setdefault(place, {})[key] = None


def _leave(index: _Index[_I], place: _I, key: ProcessKey) -> None:
    there = index.get(place, {})
    there.pop(key, None)
    if not there:
        index.pop(place, None)
