"""Microsoft's Philly trace as claims, and the pools on which they are replayed.

Used by `replay_philly.py`. 82,229 jobs of 11 teams (virtual clusters) over 109 days; the four tiny
ones are left out. Each job is a claim that nobody knows the duration of.
"""

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from pathlib import Path

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.pool.rules import Rules, SurplusOrder
from jupyter_gpupool.scheduling.amounts import DEVICES, NO_LIMIT, WHOLE_DEVICE
from jupyter_gpupool.scheduling.pool_view import ClaimView
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, link
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, WorkerShape
from jupyter_gpupool.simulation.outcome import Outcome
from jupyter_gpupool.simulation.scheduler import KeptBooks
from jupyter_gpupool.simulation.simulate import Arrival, replay

TRACE = Path(__file__).parents[2] / ".." / "shared" / "data" / "traces" / "philly"
GPUS_PER_HOST = 8
_JOBS = TRACE / "pollux_philly.csv.gz"
_TINY = frozenset({"51b7ef", "925e2b", "795a4c", "23dbec"})
_STATIC_USE = 0.35
"""How busy the static split is meant to keep a team's GPUs; it comes to 33 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row of the trace; `asked_s` counts from the first submission."""

    number: int
    team: str
    asked_s: float
    duration_s: float
    gpus: int


def is_there() -> bool:
    """Whether the trace is beside this repository."""
    return _JOBS.is_file()


def read_jobs() -> tuple[Job, ...]:
    """All jobs of the teams that count, in the order of their submission."""
    with gzip.open(_JOBS, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["cluster"] not in _TINY]
    asked = [datetime.fromisoformat(row["timestamp"]) for row in rows]
    first = min(asked)
    order = sorted(range(len(rows)), key=lambda at: (asked[at], at))
    return tuple(
        Job(
            number=number,
            team=rows[at]["cluster"],
            asked_s=(asked[at] - first).total_seconds(),
            duration_s=float(rows[at]["duration"]),
            gpus=int(rows[at]["num_gpus"]),
        )
        for number, at in enumerate(order)
    )


def static_sizes(jobs: Sequence[Job]) -> dict[str, int]:
    """GPUs of each team in the static split: enough for its demand, and for its largest gang."""
    span_s = max(job.asked_s for job in jobs)
    sizes = {}
    for team in sorted({job.team for job in jobs}):
        own = [job for job in jobs if job.team == team]
        demand = sum(job.gpus * job.duration_s for job in own) / span_s
        hosts = ceil(demand / _STATIC_USE / GPUS_PER_HOST)
        sizes[team] = GPUS_PER_HOST * max(hosts, ceil(max(j.gpus for j in own) / GPUS_PER_HOST))
    return sizes


def alone(jobs: Sequence[Job], team: str, gpus: int) -> Outcome:
    """Replay one team on its own GPUs, first come, first served, skipping whatever does not fit."""
    own = (_arrival(job, 1) for job in jobs if job.team == team)
    rules = Rules(surplus_order=SurplusOrder.LEAST_ATTAINED_SERVICE, levels=())
    return _replay(own, hosts=gpus // GPUS_PER_HOST, guarantees={team: 0}, rules=rules)


def together(
    jobs: Sequence[Job], hosts: int, guarantees: Mapping[str, int], *, on_one_host: bool = False
) -> Outcome:
    """Replay all teams on one pool, by least attained service.

    Args:
        jobs: All of them.
        hosts: With eight GPUs each.
        guarantees: In GPUs, by team.
        on_one_host: Start a job of up to eight GPUs only where they are on one host, and a larger
            one on as few hosts as can be; else that is preferred, and any GPUs will do.
    """
    rules = Rules(surplus_order=SurplusOrder.LEAST_ATTAINED_SERVICE)
    arrivals = (_arrival(job, _on_a_host(job.gpus) if on_one_host else 1) for job in jobs)
    return _replay(arrivals, hosts=hosts, guarantees=guarantees, rules=rules)


def _on_a_host(gpus: int) -> int:
    if gpus <= GPUS_PER_HOST:
        return gpus
    return next(each for each in range(GPUS_PER_HOST, 0, -1) if gpus % each == 0)


def in_proportion(sizes: Mapping[str, int], gpus: int) -> dict[str, int]:
    """Guarantees, in whole GPUs, in proportion to the static sizes."""
    total = sum(sizes.values())
    return {team: gpus * size // total for team, size in sizes.items()}


def _replay(
    arrivals: Iterator[Arrival], *, hosts: int, guarantees: Mapping[str, int], rules: Rules
) -> Outcome:
    books = KeptBooks(tree=_tree(guarantees), hosts=[_host(n) for n in range(hosts)], rules=rules)
    return replay(arrivals, books, hibernate_cost_s=rules.hibernate_cost_s)


def _arrival(job: Job, each: int) -> Arrival:
    """A job as a gang of workers that have `each` GPUs."""
    claim = ClaimView(
        id=ClaimId(f"{job.number:06}"),
        owner=UserName(job.team),
        queue=job.team,
        since_s=job.asked_s,
        minimum=job.gpus // each,
        maximum=job.gpus // each,
        worker=WorkerShape(devices=each),
    )
    return Arrival(claim=claim, duration_s=job.duration_s)


def _tree(guarantees: Mapping[str, int]) -> QueueTree:
    queues = (
        Queue(name=team, guarantee=(gpus * WHOLE_DEVICE,), limit=(NO_LIMIT,))
        for team, gpus in guarantees.items()
    )
    return link((DEVICES,), queues)


def _host(number: int) -> HostShape:
    name = f"h{number:03}"
    devices = (
        DeviceView(uuid=DeviceUuid(f"{name}-{at}"), model="GPU", memory_bytes=24 << 30)
        for at in range(GPUS_PER_HOST)
    )
    return HostShape(id=HostId(name), devices=tuple(devices))
