"""Why a claim is where it is, in sentences for its owner: pure.

Called by `using.py` with what the last pass said, so that an explanation cannot disagree with the
decision. What is counted and worded about devices comes from `scheduling.prospects`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from jupyter_gpupool.manager.service.forecasts import Start
from jupyter_gpupool.pool.claim import MOST_START_TRIES, WAITING, Claim, Phase
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.units import format_duration, plural
from jupyter_gpupool.protocol.using import ExplanationView, KernelState, KernelView
from jupyter_gpupool.scheduling.decisions import Waiting
from jupyter_gpupool.scheduling.expected import Expected
from jupyter_gpupool.scheduling.prospects import Prospects, prospects_in_words

from .starting import starts_in_words
from .views import start_view


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that bears on one claim at one moment.

    Attributes:
        leases: Those that hold a device.
        wait: Why it did not get all it wants, by the last pass; None if it lacks nothing.
        yours: How many of the devices that would do its reader's other claims hold, by name.
        start: When it is thought to start, if it waits and that can be told.
        expected: How long it is thought to take.
        idle: Which rule on idle claims is for it, and when it would act; "" if there are none.
        gave_up: So many of its workers were given up lately that none is started for now.
    """

    claim: Claim
    leases: Sequence[Lease]
    wait: Waiting | None
    prospects: Prospects
    kernels: Sequence[KernelView]
    gave_up: bool
    now: datetime
    yours: Mapping[str, int] = field(default_factory=dict)
    start: Start | None = None
    expected: Expected | None = None
    idle: str = ""

    def since(self, moment: datetime) -> str:
        """How long ago that was, or will be, in words."""
        return format_duration(abs(self.now - moment))


def explain(seen: Situation) -> ExplanationView:
    """The claim's place, what binds it, and the same in words."""
    claim = seen.claim
    wait = seen.wait if claim.phase in WAITING else None
    place = None if wait is None or wait.never else wait.place
    return ExplanationView(
        claim=claim.id,
        name=claim.name,
        phase=claim.phase,
        place=place,
        reason=wait.reason if wait is not None else claim.reason,
        never=wait is not None and wait.never,
        ahead=0 if place is None else place - 1,
        free=seen.prospects.free,
        devices=seen.prospects.devices,
        **dict(start_view(None if wait is None or wait.never else seen.start, seen.now)),
        lines=tuple(_LINES.get(claim.phase, _elsewhere)(seen)),
    )


def _pending(seen: Situation) -> Iterator[str]:
    claim, wait = seen.claim, seen.wait
    if wait is not None and not wait.never:
        yield f"It is number {wait.place} in line. {wait.reason}"
    elif wait is not None:
        yield wait.reason
    about_start = starts_in_words(seen.start, seen.expected, claim.request.deadline, seen.now)
    if seen.start is not None:
        yield from about_start
    if claim.bounds.maximum > len(seen.leases):
        yield prospects_in_words(seen.prospects, own=len(seen.leases))
        yield from _yours(seen)
    if seen.start is None and wait is not None and not wait.never:
        yield from about_start
    if claim.failed_starts:
        tried = f"{claim.failed_starts} of {MOST_START_TRIES} tries to start it came to nothing"
        yield f"{tried}: {_why_it_failed(claim)}"
    yield f"It waits for {seen.since(claim.wanted_since)} now."


def _yours(seen: Situation) -> Iterator[str]:
    # Whoever reads this may give back what they forgot, and wait for nobody.
    if len(seen.yours) == 1:
        [(name, count)] = seen.yours.items()
        yield f"{count} of {seen.prospects.devices} held by your claim {name}."
    elif seen.yours:
        each = ", ".join(f"{count} by {name}" for name, count in seen.yours.items())
        total = sum(seen.yours.values())
        yield f"{total} of {seen.prospects.devices} held by your other claims: {each}."


def _why_it_failed(claim: Claim) -> str:
    """What the last failed start said; a later change of its bounds has a reason of its own."""
    steps = reversed(list(pairwise(claim.story)))
    failures = (
        after.reason
        for before, after in steps
        if before.phase is Phase.STARTING and after.phase in WAITING
    )
    return next(failures, claim.reason)


def _starting(seen: Situation) -> Iterator[str]:
    claim, place = seen.claim, seen.claim.scheduler
    up = sum(lease.phase is LeasePhase.RUNNING for lease in seen.leases)
    listens = "listens" if place is not None and place.address else "does not listen yet"
    yield (
        f"It is starting for {seen.since(claim.phase_since)} now: its scheduler {listens},"
        f" {up} of {plural(len(seen.leases), 'worker')} registered."
    )
    if claim.failed_starts:
        yield f"This is try {claim.failed_starts + 1} of {MOST_START_TRIES}."
    yield from _limits(seen)


def _running(seen: Situation) -> Iterator[str]:
    claim = seen.claim
    up = sum(lease.phase is LeasePhase.RUNNING for lease in seen.leases)
    since = seen.since(claim.started_at or claim.phase_since)
    yield f"It runs for {since} now, with {up} of up to {plural(claim.bounds.maximum, 'worker')}."
    yield from (each.text for each in claim.problems)
    if claim.warning is not None:
        left = seen.since(claim.warning.deadline)
        yield f"It will lose devices in {left}: {claim.warning.reason}"
    yield from _fewer(seen)
    yield from _kernels(seen)
    yield from filter(None, (seen.idle,))
    yield from _limits(seen)


def _fewer(seen: Situation) -> Iterator[str]:
    leaving = sum(not lease.counts for lease in seen.leases)
    coming = sum(lease.phase is LeasePhase.GRANTED for lease in seen.leases)
    if coming:
        yield f"{plural(coming, 'worker')} on the way up."
    if leaving:
        yield f"{plural(leaving, 'worker')} on the way out."
    lacking = seen.claim.bounds.maximum - (len(seen.leases) - leaving)
    if lacking <= 0:
        return
    if seen.gave_up:
        yield "No more are started for now, for too many failed; its logs say why."
        return
    why = f" {seen.wait.reason}" if seen.wait is not None else ""
    yield f"It would take {lacking} more.{why}"
    yield prospects_in_words(seen.prospects, own=len(seen.leases))
    yield from _yours(seen)


def _kernels(seen: Situation) -> Iterator[str]:
    for kernel in seen.kernels:
        title = kernel.name or kernel.id
        if kernel.state is KernelState.DEAD:
            yield f"Its kernel {title} is gone."
        elif kernel.state is KernelState.UNKNOWN:
            yield f"What its kernel {title} does is not known."
        elif kernel.quiet_since is not None:
            quiet = seen.since(kernel.quiet_since)
            yield f"Its kernel {title} is {kernel.state}, quiet for {quiet}."
        else:
            yield f"Its kernel {title} is {kernel.state}."


def _limits(seen: Situation) -> Iterator[str]:
    claim = seen.claim
    if claim.kept_until is not None and claim.kept_until > seen.now:
        yield f"Nothing takes it as idle for another {seen.since(claim.kept_until)}."
    if claim.expires_at is not None:
        yield f"It ends by itself in {seen.since(claim.expires_at)}."


def _ending(seen: Situation) -> Iterator[str]:
    yield f"It is ending for {seen.since(seen.claim.phase_since)} now: {seen.claim.reason}"
    if seen.leases:
        yield f"{plural(len(seen.leases), 'device')} not proven free yet."


def _ended(seen: Situation) -> Iterator[str]:
    claim = seen.claim
    yield f"It ended {seen.since(claim.phase_since)} ago ({claim.end}): {claim.reason}"
    if claim.started_at is None:
        yield "It never ran."
    else:
        yield f"It had run for {format_duration(claim.phase_since - claim.started_at)}."


def _hibernated(seen: Situation) -> Iterator[str]:
    claim, kept = seen.claim, seen.claim.hibernation
    yield f"It hibernates for {seen.since(claim.phase_since)} now: {claim.reason}"
    if kept is not None and kept.again + kept.gone:
        yield (
            f"Of its results, {kept.again} that were lost are computed again once it is resumed,"
            f" and {kept.gone} are gone for good."
        )
    if claim.expires_at is not None:
        yield f"Its results are kept for another {seen.since(claim.expires_at)}; then it ends."
    yield "Resume it, or submit a task if the pool's policy lets that do."


def _elsewhere(seen: Situation) -> Iterator[str]:
    claim = seen.claim
    yield f"It is {claim.phase} for {seen.since(claim.phase_since)} now: {claim.reason}"
    yield from _limits(seen)


_LINES: dict[Phase, Callable[[Situation], Iterator[str]]] = {
    Phase.PENDING: _pending,
    Phase.RESUMING: _pending,
    Phase.HIBERNATED: _hibernated,
    Phase.STARTING: _starting,
    Phase.RUNNING: _running,
    Phase.ENDING: _ending,
    Phase.ENDED: _ended,
}
