"""Keeps what was seen of claims for dry runs of other policies: a few rows an hour and claim.

Called by `idle_watching` with each sample, whether or not a rule is in force. What shows the same
is one record of up to an hour (`scheduling.idle_recording`); whoever works now and then is recorded
in pieces of five minutes, in which activity counts for all of it. A record is written when the next
one begins; a manager that is killed loses the one that is open.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.signals import Sample
from jupyter_gpupool.scheduling.idle import Situation
from jupyter_gpupool.scheduling.idle_dry_run import Recorded
from jupyter_gpupool.scheduling.idle_recording import decided_alike, joined
from jupyter_gpupool.scheduling.idle_watch import Watch

from .records import ClaimRecord, RecordedUse

if TYPE_CHECKING:
    from .unit import UnitOfWork

PIECE_MS = 300_000


def keep_record(unit: "UnitOfWork", claim_id: ClaimId, new: Recorded) -> None:
    """Take in one sample of a claim; samples come in the order of their time."""
    last = unit.recording.get(claim_id)
    one = None if last is None else joined(last, new) or _piece(last, new)
    if one is None:
        close_record(unit, claim_id)
    unit.recording[claim_id] = one or new


def close_record(unit: "UnitOfWork", claim_id: ClaimId) -> None:
    """Write down what is recorded of a claim: what follows is something else."""
    last = unit.recording.get(claim_id)
    if last is not None:
        unit.new_recorded.append(RecordedUse(claim_id=claim_id, recorded=last))
        del unit.recording[claim_id]


def recorded_of(
    sample: Sample,
    situation: Situation,
    claim: ClaimRecord,
    leases: Iterable[Lease],
    watch: Watch,
) -> Recorded:
    """A sample with all else that decided on its claim; `watch` is as it was before."""
    held = [lease.thousandths for lease in leases]
    least = max(1, claim.claim.bounds.minimum)
    keeps = [keep.for_ms for keep in watch.keeps[-1:] if keep.at_ms == watch.now_ms]
    return Recorded(
        sample=sample,
        subject=situation.subject,
        wanted_by=situation.wanted_by,
        protected=situation.protected,
        spare=sum(held[least:]),
        keep_ms=keeps[0] if keeps else None,
    )


def _piece(last: Recorded, new: Recorded) -> Recorded | None:
    """Both as one, if that is short: active is what was so in either, quiet what was so in both."""
    sample, later = last.sample, new.sample
    is_next = sample.life == later.life and sample.end_ms == later.begin_ms
    is_same = decided_alike(last, new) and new.keep_ms is None
    if not (is_next and is_same) or later.end_ms - sample.begin_ms > PIECE_MS:
        return None
    active = sample.active | later.active
    both = replace(
        later,
        begin_ms=sample.begin_ms,
        active=active,
        quiet=(sample.quiet & later.quiet) - active,
        gpu_peak=_highest(sample.gpu_peak, later.gpu_peak),
        gpu_mean=_mean(sample, later),
        orphaned=later.orphaned if sample.orphaned == later.orphaned else None,
    )
    return replace(last, sample=both)


def _highest(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _mean(sample: Sample, later: Sample) -> int | None:
    """Rounded up, as in a record of samples that show the same."""
    if sample.gpu_mean is None or later.gpu_mean is None:
        return None
    one_ms, other_ms = sample.end_ms - sample.begin_ms, later.end_ms - later.begin_ms
    whole = sample.gpu_mean * one_ms + later.gpu_mean * other_ms
    return -(-whole // max(1, one_ms + other_ms))
