"""The one table of all processes the agent keeps; every change of it goes through `put`.

Owned by `host.HostAgent`, read by everyone in the agent. `changed` is called after each change, so
that the next turn can look at what has to be done and the manager hears of it.
"""

from collections.abc import Callable, Iterator, Mapping

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, LeaseId
from jupyter_gpupool.protocol.launch import Hello

from .keys import ProcessKey
from .seen import Seen, Stage


class Table(Mapping[ProcessKey, Seen]):
    """All processes by key. Reads like a mapping."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._rows: dict[ProcessKey, Seen] = {}
        self._changed = changed

    def __getitem__(self, key: ProcessKey) -> Seen:
        return self._rows[key]

    def __iter__(self) -> Iterator[ProcessKey]:
        return iter(tuple(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, seen: Seen) -> None:
        """Keep a process, or what became of it."""
        if self._rows.get(seen.key) != seen:
            self._rows[seen.key] = seen
            self._changed()

    def forget(self, key: ProcessKey) -> None:
        """Nothing of it is left."""
        if self._rows.pop(key, None) is not None:
            self._changed()

    def named(self, hello: Hello) -> Seen | None:
        """The process that may call itself so: of several starts, the one that is not going."""
        found = [
            row
            for row in self._rows.values()
            if row.key.claim_id == hello.claim_id
            and row.key.role is hello.role
            and (row.key.lease_id or "") == hello.lease_id
        ]
        found.sort(key=lambda row: (row.stage in (Stage.ALIVE, Stage.FORKING), row.key.start))
        return found[-1] if found else None

    def leases_on(self, device: DeviceUuid) -> tuple[LeaseId, ...]:
        """Leases that this device is not free of."""
        rows = (r for r in self._rows.values() if device in r.devices and r.may_use_device)
        return tuple(row.key.lease_id for row in rows if row.key.lease_id is not None)

    def claims(self) -> frozenset[ClaimId]:
        """Claims of which anything is left here."""
        return frozenset(key.claim_id for key in self._rows)
