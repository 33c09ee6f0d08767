"""What should run on this host, by the manager's last word. Pure.

`Desired` is grouped by claim, the agent works by process: `wanted_of` turns the one into the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.protocol.launch import Orders, Role
from jupyter_gpupool.protocol.link import Desired, WantedClaim, WantedWorker

from .keys import ProcessKey


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedProcess:
    """One process that should run. `worker` is None for a scheduler and for a holder."""

    key: ProcessKey
    claim: WantedClaim
    worker: WantedWorker | None = None

    @property
    def device(self) -> DeviceUuid | None:
        """The device it should run on, the first of several."""
        return None if self.worker is None else self.worker.device

    @property
    def devices(self) -> tuple[DeviceUuid, ...]:
        """All devices it should run on."""
        return () if self.worker is None else self.worker.devices

    @property
    def share(self) -> int:
        """Thousandths of its device that it should have."""
        return WHOLE_DEVICE if self.worker is None else self.worker.share

    @property
    def retires(self) -> bool:
        """Whether it should hand its results over and go."""
        return self.worker is not None and self.worker.retire

    def orders(self, scheduler_address: str | None) -> Orders:
        """What it should be told, given where the claim's scheduler listens."""
        if self.key.role is not Role.SCHEDULER:
            return Orders(scheduler_address=scheduler_address)
        assert self.claim.scheduler is not None
        scheduler = self.claim.scheduler
        here = (worker.lease_id for worker in self.claim.workers if worker.retire)
        retire = tuple(sorted({*here, *scheduler.retire}))
        return Orders(
            retire=retire,
            keep_workers=scheduler.keep_workers,
            wish=scheduler.wish,
            quota_bytes=scheduler.quota_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """All that should run here, and nothing else should.

    Attributes:
        by_claim: The same as the manager said it.
    """

    generation: int
    processes: Mapping[ProcessKey, WantedProcess]
    by_claim: tuple[WantedClaim, ...] = ()

    @property
    def claims(self) -> frozenset[ClaimId]:
        """The claims that have anything here."""
        return frozenset(key.claim_id for key in self.processes)


NOTHING = Wanted(generation=0, processes={})


def wanted_of(desired: Desired) -> Wanted:
    """Read a manager's message by process, schedulers before workers."""
    processes = [process for claim in desired.claims for process in _processes_of(claim)]
    return Wanted(
        generation=desired.generation,
        processes={process.key: process for process in processes},
        by_claim=desired.claims,
    )


def is_news(desired: Desired, last_generation: int) -> bool:
    """Whether a message is newer than the last one heard on its connection."""
    return desired.generation > last_generation


def _processes_of(claim: WantedClaim) -> list[WantedProcess]:
    scheduler_key = ProcessKey(claim.claim_id, claim.start)
    scheduler = [WantedProcess(key=scheduler_key, claim=claim)] if claim.scheduler else []
    holder = [WantedProcess(key=scheduler_key.holder, claim=claim)] if claim.holder else []
    workers = [
        WantedProcess(
            key=ProcessKey(claim.claim_id, claim.start, worker.lease_id),
            claim=claim,
            worker=worker,
        )
        for worker in claim.workers
    ]
    return scheduler + holder + workers
