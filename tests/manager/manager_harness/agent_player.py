"""Agents that play along: small stand-ins for what lies behind the wire."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from jupyter_gpupool.pool.device import Device, DeviceState
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, LeaseId
from jupyter_gpupool.protocol.keeping import Keeping, KeepPhase, Unkept, Wish
from jupyter_gpupool.protocol.link import (
    ClaimUse,
    Desired,
    DeviceReport,
    EnvironmentReport,
    HolderReport,
    HostReport,
    ProcessPhase,
    SchedulerReport,
    WorkerReport,
)

from .virtual_time import START


@dataclass
class AgentPlayer:
    """A host's agent as the manager sees it: makes its `Desired` so and reports what is.

    Attributes:
        workers: Phase of each worker that physically is there, by lease.
        placed: Claim, start and device of each of those, the first of several.
        further: Their other devices.
        schedulers: Phase of each scheduler, by claim; `starts` is which start it belongs to.
        holders: Phase of each holder, by claim.
        keepings: Where each scheduler says its results are; `wishes` is what it was told.
        results: How many each claim has, if any, of a byte each; `unkept` which of them cannot be
            kept, `unread` which no worker can read when they come back.
        environments: The Python environments it offers, the default first.
        runs_kernels: It runs claims in their kernel's own environment.
        uses: What its claims did since its last report.
    """

    host_id: HostId
    devices: tuple[Device, ...]
    labels: tuple[str, ...] = ()
    generation: int = 0
    workers: dict[LeaseId, ProcessPhase] = field(default_factory=dict)
    placed: dict[LeaseId, tuple[ClaimId, int, DeviceUuid]] = field(default_factory=dict)
    further: dict[LeaseId, tuple[DeviceUuid, ...]] = field(default_factory=dict)
    schedulers: dict[ClaimId, ProcessPhase] = field(default_factory=dict)
    starts: dict[ClaimId, int] = field(default_factory=dict)
    holders: dict[ClaimId, ProcessPhase] = field(default_factory=dict)
    keepings: dict[ClaimId, Keeping] = field(default_factory=dict)
    wishes: dict[ClaimId, Wish] = field(default_factory=dict)
    results: dict[ClaimId, int] = field(default_factory=dict)
    unkept: dict[ClaimId, tuple[Unkept, ...]] = field(default_factory=dict)
    unread: dict[ClaimId, tuple[Unkept, ...]] = field(default_factory=dict)
    states: dict[DeviceUuid, DeviceState] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    environments: tuple[EnvironmentReport, ...] = ()
    runs_kernels: bool = False
    uses: tuple[ClaimUse, ...] = ()

    def make_so(self, desired: Desired | None) -> None:
        """Start what is wanted, and begin to stop what is not."""
        if desired is None:
            return
        self.generation = desired.generation
        wanted = {w.lease_id: (c, w) for c in desired.claims for w in c.workers}
        schedulers = {c.claim_id: c for c in desired.claims if c.scheduler is not None}
        for lease_id in self.workers.keys() - wanted.keys():
            self.workers[lease_id] = ProcessPhase.STOPPING
        for claim_id in self.schedulers.keys() - schedulers.keys():
            self.schedulers[claim_id] = ProcessPhase.STOPPING
        holders = {c.claim_id for c in desired.claims if c.holder is not None}
        for claim_id in self.holders.keys() - holders:
            self.holders[claim_id] = ProcessPhase.STOPPING
        for claim_id in holders - self.holders.keys():
            self.holders[claim_id] = ProcessPhase.STARTING
        self.wishes = {i: c.scheduler.wish for i, c in schedulers.items() if c.scheduler}
        for claim_id, claim in schedulers.items():
            if self.starts.get(claim_id) != claim.start:
                self.schedulers[claim_id] = ProcessPhase.STARTING
                self.starts[claim_id] = claim.start
        for lease_id, (claim, worker) in wanted.items():
            if lease_id not in self.workers:
                self.workers[lease_id] = ProcessPhase.STARTING
                self.placed[lease_id] = (claim.claim_id, claim.start, worker.device)
                self.further[lease_id] = worker.further

    def all_run(self) -> None:
        """Everything that starts has come up."""
        for phases in (self.workers, self.schedulers, self.holders):
            for key, phase in phases.items():
                if phase is ProcessPhase.STARTING:
                    phases[key] = ProcessPhase.RUNNING
        for claim_id, wish in self.wishes.items():
            self.keepings[claim_id] = self._kept(claim_id, wish)

    def _kept(self, claim_id: ClaimId, wish: Wish) -> Keeping:
        """What a scheduler says once all has been done that it was told."""
        results, unkept = self.results.get(claim_id, 0), self.unkept.get(claim_id, ())
        if wish is Wish.SURVEYED:
            said = {"unkept": unkept, "unkept_count": len(unkept)}
            said["result_bytes"] = results
            return Keeping(wish=wish, surveyed=True, results=results, **said)
        if wish is Wish.AWAKE:
            unread = self.unread.get(claim_id, ())
            count = len(unread)
            said = {"held": count, "unread": count, "unkept": unread, "unkept_count": count}
            return Keeping(wish=wish, **said)
        if unkept:
            return Keeping(wish=wish, phase=KeepPhase.REFUSED, unkept=unkept, unkept_count=1)
        if self.holders.get(claim_id) is not ProcessPhase.RUNNING:
            return Keeping(wish=wish, surveyed=True, results=results, result_bytes=results)
        return Keeping(wish=wish, phase=KeepPhase.HIBERNATED, held=results, held_bytes=results)

    def all_stopped(self) -> None:
        """Everything that had to stop is gone, and its device is proven free."""
        for phases in (self.workers, self.schedulers, self.holders):
            for key in [k for k, phase in phases.items() if phase is ProcessPhase.STOPPING]:
                del phases[key]
                if phases is self.schedulers:
                    self.starts.pop(key, None)

    def report(self) -> HostReport:
        """All that is."""
        return HostReport(
            host_id=self.host_id,
            name=self.host_id,
            address="10.0.0.1",
            agent_pid=1,
            agent_version="0",
            generation=self.generation,
            at=START,
            cpus=8,
            memory_bytes=2**34,
            labels=self.labels,
            environments=tuple(each.name for each in self.environments),
            environment_reports=self.environments,
            kernel_environments=self.runs_kernels,
            devices=tuple(
                DeviceReport(device=d, state=self.states.get(d.uuid, DeviceState()))
                for d in self.devices
            ),
            schedulers=tuple(self._schedulers()),
            holders=tuple(
                HolderReport(claim_id=claim_id, start=self.starts[claim_id], phase=phase)
                for claim_id, phase in self.holders.items()
                if claim_id in self.starts
            ),
            workers=tuple(self._workers()),
            life="boot",
            uses=self.uses,
        )

    def _schedulers(self) -> Iterator[SchedulerReport]:
        for claim_id, phase in self.schedulers.items():
            runs = phase is ProcessPhase.RUNNING
            yield SchedulerReport(
                claim_id=claim_id,
                start=self.starts[claim_id],
                phase=phase,
                address=f"tls://10.0.0.1:{self.starts[claim_id]}" if runs else None,
                dashboard_port=8787 if runs else None,
                problem=self.problems.get(claim_id, ""),
                keeping=self.keepings.get(claim_id),
            )

    def _workers(self) -> Iterator[WorkerReport]:
        for lease_id, phase in self.workers.items():
            claim_id, start, device = self.placed[lease_id]
            yield WorkerReport(
                claim_id=claim_id,
                start=start,
                lease_id=lease_id,
                device=device,
                further=self.further.get(lease_id, ()),
                phase=phase,
                problem=self.problems.get(lease_id, ""),
            )


def an_agent(name: str, devices: int, *labels: str) -> AgentPlayer:
    """A host that has not joined yet."""
    uuids = [DeviceUuid(f"SIM-{name}-{n}") for n in range(devices)]
    made = tuple(
        Device(uuid=uuid, index=n, model="Sim 16", memory_bytes=2**34)
        for n, uuid in enumerate(uuids)
    )
    return AgentPlayer(HostId(name), made, labels)
