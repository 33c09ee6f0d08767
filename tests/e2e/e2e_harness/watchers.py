"""Eyes that stay open through a whole scenario and see what a look at its end would miss.

Started by the running pool. They trust the kernel, the stub devices' contexts and the agent's
records, and compare these with each other, never with the manager's opinion alone.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from jupyter_gpupool.protocol.keeping import HOLDER_NAME

from .processes import Process, carrying, in_sessions

_LOOK_EVERY_S = 0.05
_WHOLE = 1000


@dataclass(frozen=True, slots=True)
class Record:
    """What an agent wrote down about a process it had forked; `share` in thousandths."""

    claim_id: str
    lease_id: str
    role: str
    devices: tuple[str, ...]
    share: int
    process: Process


def read_records(folder: Path) -> list[Record]:
    """The records of an agent's state folder; one that is being written is left out."""
    found = []
    for path in (folder / "running").glob("*.json"):
        record = _record(path)
        if record is not None:
            found.append(record)
    return found


def _record(path: Path) -> Record | None:
    parts = [unquote(part) for part in path.stem.split(",")]
    try:
        claim_id, _, lease_id, device = parts
        values = json.loads(path.read_text())
        found = Process(int(values["pid"]), int(values["started_ticks"]))
        devices = (device, *values["further"]) if device else ()
        share = int(values["share"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    role = {"": "scheduler", HOLDER_NAME: "holder"}.get(lease_id, "worker")
    return Record(claim_id, lease_id, role, devices, share, found)


class Watch:
    """Looks every 50 ms at who is on which device, and remembers every process of each claim."""

    def __init__(
        self, records: Callable[[], list[Record]], contexts: Callable[[], dict[str, set[int]]]
    ) -> None:
        self._records = records
        self._contexts = contexts
        self._processes: dict[str, set[Process]] = defaultdict(set)
        self._violations: list[str] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Open the eyes."""
        self._thread.start()

    def stop(self) -> None:
        """Close them."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def assert_exclusive(self) -> None:
        """No device has had processes of two claims on it at the same time, but for their parts.

        Raises:
            AssertionError: With every case that was seen.
        """
        assert not self._violations, "\n".join(self._violations)

    def processes_of(self, claim_id: str) -> set[Process]:
        """Every process that was ever seen to be of this claim."""
        return set(self._processes[claim_id])

    def left_of(self, claim_id: str) -> list[str]:
        """What still lives of a claim: by record, by session, by its mark in the environment."""
        known = self.processes_of(claim_id)
        left = {found for found in known if found.lives}
        left.update(in_sessions({found.pid for found in known}))
        left.update(carrying(f"GPUPOOL_CLAIM={claim_id}"))
        return [f"{found.pid} {found.command}" for found in left]

    def _run(self) -> None:
        while not self._done.wait(_LOOK_EVERY_S):
            self.look()

    def look(self) -> None:
        """One look."""
        records = self._records()
        for record in records:
            self._processes[record.claim_id].add(record.process)
        workers = [r for r in records if r.role == "worker" and r.process.lives]
        self._compare("agent's records", _by_device(workers))
        owners = {record.process.pid: record for record in workers}
        contexts = {
            device: [owners[pid] for pid in pids if pid in owners]
            for device, pids in self._contexts().items()
        }
        self._compare("contexts", contexts)

    def _compare(self, source: str, by_device: dict[str, list[Record]]) -> None:
        for device, workers in by_device.items():
            claims = {worker.claim_id for worker in workers}
            if len(claims) > 1 and sum(worker.share for worker in workers) > _WHOLE:
                self._violations.append(f"{source}: {device} is shared by {sorted(claims)}")


def _by_device(workers: list[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in workers:
        for device in record.devices:
            found[device].append(record)
    return found
