"""Virtual time: claims arrive, are served by the scheduling proper, work, hibernate and end.

Called by the benchmarks and by whoever asks how a pool would fare. One heap ordered by (time,
kind, serial), so that equal times repeat exactly. Nothing here knows a clock or chance.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.scheduling.decisions import Decisions, TakeHow
from jupyter_gpupool.scheduling.pool_view import ClaimView

from .outcome import Course, Outcome
from .scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A claim that is made at `claim.since_s`.

    Attributes:
        duration_s: For how long it needs at least its minimum of workers until it is done.
    """

    claim: ClaimView
    duration_s: float


class _Kind(IntEnum):
    """What happens; of what happens at once, ends come first, for they free devices."""

    END = 0
    ARRIVAL = 1


@dataclass(slots=True, eq=False)
class _Run:
    """A claim on its way.

    Attributes:
        left_s: What is left to do, with devices.
        resuming_s: What is left of its resuming, with devices too.
        running_since_s: Since when it holds devices, if it does.
        end: The serial of its end ahead; others are void.
    """

    arrival: Arrival
    left_s: float
    resuming_s: float = 0.0
    running_since_s: float | None = None
    started_s: float | None = None
    hibernations: int = 0
    end: int = -1


@dataclass(slots=True, eq=False)
class _Simulation:
    scheduler: Scheduler
    hibernate_cost_s: float
    now_s: float = 0.0
    serial: int = 0
    passes: int = 0
    events: list[tuple[float, _Kind, int, ClaimId]] = field(default_factory=list)
    runs: dict[ClaimId, _Run] = field(default_factory=dict)
    courses: list[Course] = field(default_factory=list)
    released: list[ClaimId] = field(default_factory=list)


def replay(
    arrivals: Iterable[Arrival], scheduler: Scheduler, *, hibernate_cost_s: float
) -> Outcome:
    """Let claims arrive, and go on until nothing more can happen.

    Args:
        arrivals: In any order; their claims hold nothing yet.
        scheduler: Knows hosts, queues and rules, and no claims yet.
        hibernate_cost_s: How long a claim holds its devices to no use each time it resumes.
    """
    simulation = _Simulation(scheduler, hibernate_cost_s)
    for arrival in arrivals:
        claim = arrival.claim
        simulation.runs[claim.id] = _Run(arrival, arrival.duration_s)
        _push(simulation, claim.since_s, _Kind.ARRIVAL, claim.id)
    while (at_s := _next_s(simulation)) is not None:
        _step(simulation, at_s)
    return Outcome(
        courses=tuple(simulation.courses),
        unfinished=(*simulation.released, *simulation.runs),
        passes=simulation.passes,
    )


def _push(simulation: _Simulation, at_s: float, kind: _Kind, claim_id: ClaimId) -> int:
    simulation.serial += 1
    heappush(simulation.events, (at_s, kind, simulation.serial, claim_id))
    return simulation.serial


def _next_s(simulation: _Simulation) -> float | None:
    """When something happens next: in the heap, or in the scheduling for time alone."""
    events = simulation.events
    while events and _is_void(simulation, events[0]):
        heappop(events)
    next_s = simulation.scheduler.next_s
    if not events:
        return next_s
    return events[0][0] if next_s is None else min(events[0][0], next_s)


def _is_void(simulation: _Simulation, event: tuple[float, _Kind, int, ClaimId]) -> bool:
    _, kind, serial, claim_id = event
    if kind is _Kind.ARRIVAL:
        return False
    run = simulation.runs.get(claim_id)
    return run is None or run.end != serial


def _step(simulation: _Simulation, at_s: float) -> None:
    """Let all happen that happens at one time, then take a pass."""
    simulation.now_s = at_s
    simulation.scheduler.advance(at_s)
    while (event := _due(simulation)) is not None:
        _, kind, _, claim_id = event
        if kind is _Kind.ARRIVAL:
            simulation.scheduler.add(simulation.runs[claim_id].arrival.claim)
        else:
            _end(simulation, claim_id)
    simulation.passes += 1
    _carry_out(simulation, simulation.scheduler.decide())


def _due(simulation: _Simulation) -> tuple[float, _Kind, int, ClaimId] | None:
    events = simulation.events
    while events and events[0][0] <= simulation.now_s:
        event = heappop(events)
        if not _is_void(simulation, event):
            return event
    return None


def _end(simulation: _Simulation, claim_id: ClaimId) -> None:
    simulation.scheduler.remove(claim_id)
    run = simulation.runs.pop(claim_id)
    claim = run.arrival.claim
    assert run.started_s is not None
    simulation.courses.append(
        Course(
            claim_id=claim_id,
            queue=claim.queue,
            asked_s=claim.since_s,
            started_s=run.started_s,
            ended_s=simulation.now_s,
            duration_s=run.arrival.duration_s,
            hibernations=run.hibernations,
        )
    )


def _carry_out(simulation: _Simulation, decided: Decisions) -> None:
    """Do what a pass has decided: what is taken is free at once, so promises are kept at once."""
    for take in decided.takes:
        if take.how is TakeHow.HIBERNATE:
            _hibernate(simulation, simulation.runs[take.claim_id])
        elif take.how is TakeHow.RELEASE:
            _lose(simulation, take.claim_id)
    for claim_id in dict.fromkeys(move.claim_id for move in decided.moves if not move.goes_on):
        _hibernate(simulation, simulation.runs[claim_id])
    for claim_id in _served(decided):
        _run(simulation, claim_id)


def _served(decided: Decisions) -> Iterator[ClaimId]:
    yield from (grant.claim_id for grant in decided.grants)
    yield from (promise.claim_id for promise in decided.promises)
    yield from (move.claim_id for move in decided.moves)


def _lose(simulation: _Simulation, claim_id: ClaimId) -> None:
    """Let a claim end that cannot hibernate, before it is done."""
    simulation.scheduler.remove(claim_id)
    del simulation.runs[claim_id]
    simulation.released.append(claim_id)


def _hibernate(simulation: _Simulation, run: _Run) -> None:
    assert run.running_since_s is not None
    held_s = simulation.now_s - run.running_since_s
    resumed_s = min(held_s, run.resuming_s)
    run.left_s -= held_s - resumed_s
    run.resuming_s = simulation.hibernate_cost_s
    run.running_since_s = None
    run.hibernations += 1
    run.end = -1


def _run(simulation: _Simulation, claim_id: ClaimId) -> None:
    """Let a claim work; one that only grows goes on as before."""
    run = simulation.runs[claim_id]
    if run.running_since_s is not None:
        return
    run.running_since_s = simulation.now_s
    if run.started_s is None:
        run.started_s = simulation.now_s
    end_s = simulation.now_s + run.resuming_s + run.left_s
    run.end = _push(simulation, end_s, _Kind.END, claim_id)
