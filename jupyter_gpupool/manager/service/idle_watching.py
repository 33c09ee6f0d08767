"""Takes what was seen of claims into their watches, and has done what comes of that.

Called with each report of a host, for the claims whose scheduler is there: a sample of a claim is
what all its hosts and kernels say until its scheduler's host reports. What is due between two
reports is asked for (`deadlines.idle`). Judges nothing itself: `scheduling.idle` does.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.signals import Sample
from jupyter_gpupool.protocol.using import KernelState
from jupyter_gpupool.scheduling.idle import Situation, advance, deciding
from jupyter_gpupool.scheduling.idle_next import next_in_ms
from jupyter_gpupool.scheduling.idle_verdicts import Call
from jupyter_gpupool.scheduling.idle_watch import Watch, moved

from .idle_acts import clear, take_idle, warn
from .idle_samples import Surroundings, sample_of
from .idle_subjects import is_protected, subject_of
from .recording import close_record, keep_record, recorded_of
from .records import ClaimRecord, WatchRecord
from .sightings import Sighting

if TYPE_CHECKING:
    from .unit import UnitOfWork

_LOG = logging.getLogger(__name__)
SAVED_EVERY_S = 300.0
"""What a watch knows is written down so often: agents tell the last minutes again to whoever joins.
"""
_UNKNOWN = KernelState.UNKNOWN
_A_LITTLE_S = 0.02
"""A host that is asked a moment too early would have to be asked again."""
KERNELS_HEARD_WITHIN_S = 45.0
"""A manager that has just started judges nobody before servers have told of their kernels."""


def watch_host(unit: "UnitOfWork", host_id: HostId) -> None:
    """Judge the claims whose schedulers are on this host."""
    told = {use.claim_id for use in unit.reports[host_id].uses if use.has_scheduler}
    for claim_id in sorted(told):
        record = unit.claims.get(claim_id)
        if record is not None and _is_watched(record.claim, host_id):
            _try_to_watch(unit, record, host_id)


def situation_of(unit: "UnitOfWork", record: ClaimRecord, watch: Watch) -> Situation:
    """All but its samples that decides on a claim now."""
    leases = tuple(lease for lease in unit.leases_of(record.claim.id) if lease.counts)
    return Situation(
        rules=unit.policy.policy.idle,
        revision=unit.policy.revision,
        subject=subject_of(unit, record, leases),
        wanted_by=unit.moment.idle.wanting.for_any_of(_devices(unit, leases)),
        protected=is_protected(unit, record, watch.now_ms / 1000),
    )


def watch_of(unit: "UnitOfWork", claim: Claim) -> Watch:
    """What is remembered of a claim; a warning counts only while it stands for its user, too."""
    known = unit.watches.get(claim.id)
    watch = Watch() if known is None else known.watch
    # Others' needs come first, and their warning may have taken its place.
    is_told = claim.warning is not None and claim.warning.evidence is not None
    return watch if is_told or watch.warned is None else _unwarned(watch)


def put_watch(
    unit: "UnitOfWork", claim_id: ClaimId, watch: Watch, *, save: bool, next_s: float | None = None
) -> None:
    """Keep a watch, and write it down if it is to be saved, or was not for a while.

    While there are no rules, what was seen decides nothing, and is not worth a row.
    """
    known, monotonic_s = unit.watches.get(claim_id), unit.moment.monotonic_s
    saved_s = None if known is None else known.saved_s
    is_old = saved_s is None or monotonic_s - saved_s >= SAVED_EVERY_S
    record = WatchRecord(
        claim_id=claim_id,
        watch=watch,
        saved_s=monotonic_s if save or is_old else saved_s,
        next_s=next_s,
    )
    unit.watches[claim_id] = record
    if save or (is_old and unit.policy.policy.idle):
        unit.kept_watches[claim_id] = record


def save_watches(unit: "UnitOfWork") -> None:
    """Write down what every watch knows: the manager is about to end."""
    for claim_id, record in list(unit.watches.items()):
        kept = unit.kept_watches.get(claim_id)
        if kept is None or kept.watch != record.watch:
            unit.kept_watches[claim_id] = record
    for claim_id in [claim_id for claim_id, _ in unit.recording.items()]:
        close_record(unit, claim_id)


def _is_watched(claim: Claim, host_id: HostId) -> bool:
    place = claim.scheduler
    return claim.phase is Phase.RUNNING and place is not None and place.host_id == host_id


def _try_to_watch(unit: "UnitOfWork", record: ClaimRecord, host_id: HostId) -> None:
    child = unit.child()
    try:
        _watch_claim(child, record, host_id)
    except Exception:  # noqa: BLE001 - a host must not be cut off for a claim that cannot be judged
        _LOG.exception("Claim %s could not be judged; nothing is taken", record.claim.id)
    else:
        child.merge()


def _watch_claim(unit: "UnitOfWork", record: ClaimRecord, host_id: HostId) -> None:
    claim = record.claim
    leases = tuple(lease for lease in unit.leases_of(claim.id) if lease.counts)
    watch = watch_of(unit, claim)
    samples = _samples(unit, claim, leases, watch, host_id)
    if not leases or not samples:
        return
    situation = situation_of(unit, record, watch)
    for sample in samples:
        keep_record(unit, claim.id, recorded_of(sample, situation, record, leases, watch))
    # What went by while nobody judged is counted, and nobody is warned or taken in hindsight.
    for sample in samples[:-1]:
        watch = moved(watch, sample, situation.rules)
    after, verdict = advance(watch, samples[-1], situation)
    match verdict.call:
        case Call.WARN:
            is_told = warn(unit, claim.id, verdict, _left(unit, after, samples[-1]))
            after = after if is_told else _unwarned(after)
        case Call.CLEAR:
            clear(unit, claim.id, verdict)
        case Call.TAKE:
            after = _unwarned(after)
            take_idle(unit, claim.id, verdict)
    if unit.claims[claim.id].claim.phase is Phase.RUNNING:
        next_s = _next_s(unit, after, situation, samples[-1])
        put_watch(unit, claim.id, after, save=verdict.call is not Call.NOTHING, next_s=next_s)


def _samples(
    unit: "UnitOfWork", claim: Claim, leases: Sequence[Lease], watch: Watch, host_id: HostId
) -> list[Sample]:
    seen = unit.moment.idle.sightings.of(claim.id, host_id)
    fresh = [each for each in seen if _is_fresh(each, watch)]
    beside = _surroundings(unit, claim, leases, host_id)
    is_young = unit.moment.monotonic_s - unit.moment.idle.since_s < KERNELS_HEARD_WITHIN_S
    if is_young and not all(word.was_heard for word in beside.kernels):
        return []
    return [sample_of(each, beside) for each in fresh]


def _surroundings(
    unit: "UnitOfWork", claim: Claim, leases: Sequence[Lease], host_id: HostId
) -> Surroundings:
    idle = unit.moment.idle
    words = zip(idle.activity.words(claim.id, claim.kernels), claim.kernels, strict=True)
    # A kernel that restarts is another process by the same name: its server knows better.
    there = [(w, k) for w, k in words if k.gone_since is None or w.state is not _UNKNOWN]
    return Surroundings(
        elsewhere=idle.sightings.elsewhere(claim.id, host_id),
        leases={lease.id for lease in leases},
        kernels=tuple(word for word, _ in there),
        gone=len(claim.kernels) - len(there),
        now=unit.now,
        now_s=unit.moment.monotonic_s,
    )


def _is_fresh(seen: Sighting, watch: Watch) -> bool:
    return seen.use.has_scheduler and (seen.life != watch.life or seen.use.end_ms > watch.until_ms)


def _next_s(unit: "UnitOfWork", watch: Watch, situation: Situation, sample: Sample) -> float | None:
    rule = deciding(situation.rules, situation.subject, sample.at)
    ahead_ms = next_in_ms(watch, rule, situation.subject)
    if ahead_ms is None:
        return None
    passed_s = (unit.now - sample.at).total_seconds()
    return unit.moment.monotonic_s + max(0.0, ahead_ms / 1000 - passed_s) + _A_LITTLE_S


def _left(unit: "UnitOfWork", watch: Watch, sample: Sample) -> timedelta:
    """From now until what was announced is due; the sample may be a moment old."""
    due_ms = 0 if watch.warned is None else watch.warned.due_ms - watch.now_ms
    return max(timedelta(), timedelta(milliseconds=due_ms) - (unit.now - sample.at))


def _unwarned(watch: Watch) -> Watch:
    return replace(watch, warned=None)


def _devices(unit: "UnitOfWork", leases: Sequence[Lease]) -> Iterator[Device]:
    for lease in leases:
        host = unit.hosts.get(lease.host_id)
        devices = () if host is None else host.devices
        yield from (device for device in devices if device.uuid in lease.devices)
