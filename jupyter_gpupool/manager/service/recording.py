"""Keeps what was seen of claims for dry runs of other policies: a few rows an hour and claim.

Called by `idle_watching` with each sample, whether or not a rule is in force. What shows the same
is one record of up to an hour (`scheduling.idle_recording`); whoever works now and then is recorded
in pieces of five minutes, in which activity counts for all of it. What follows activity stays apart
until it stirs again, so that rest begins in the records when it began: a dry run of the rules in
force finds what they took. What is open is written when something else begins; a manager that is
killed loses it.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.signals import Sample
from jupyter_gpupool.scheduling.idle import Situation
from jupyter_gpupool.scheduling.idle_dry_run import USED, Recorded
from jupyter_gpupool.scheduling.idle_recording import decided_alike, joined
from jupyter_gpupool.scheduling.idle_runs import Reading, read
from jupyter_gpupool.scheduling.idle_watch import Watch

from .records import ClaimRecord, RecordedUse

if TYPE_CHECKING:
    from .unit import UnitOfWork

PIECE_MS = 300_000
Open: TypeAlias = tuple[Recorded, ...]
"""What is not written yet: a record, and what came after it if both may become one piece."""


def keep_record(unit: "UnitOfWork", claim_id: ClaimId, new: Recorded) -> None:
    """Take in one sample of a claim; samples come in the order of their time."""
    seen = unit.recording.get(claim_id)
    done, still_open = ((), (new,)) if seen is None else _with(seen, new)
    _write(unit, claim_id, done)
    unit.recording[claim_id] = still_open


def close_record(unit: "UnitOfWork", claim_id: ClaimId) -> None:
    """Write down what is recorded of a claim: what follows is something else."""
    seen = unit.recording.get(claim_id)
    if seen is not None:
        _write(unit, claim_id, seen)
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


def _with(seen: Open, new: Recorded) -> tuple[Open, Open]:
    """What is to be written when one more sample has come, and what is open then."""
    before, last = seen[:-1], seen[-1]
    both = joined(last, new) or _in_one_word(last, new)
    if both is not None:
        lasts = bool(before) and not _is_short(before[0], both)
        return (before, (both,)) if lasts else ((), (*before, both))
    whole = (_piece(before[0], last) if before else None) or last
    if _piece(whole, new) is not None:
        return (), (whole, new)
    # Rest that ends here ends here whatever rules ask; else it may be what a rule goes by.
    return ((whole,) if read(USED, new.sample) is Reading.ACTIVE else seen), (new,)


def _write(unit: "UnitOfWork", claim_id: ClaimId, done: Open) -> None:
    unit.new_recorded += (RecordedUse(claim_id=claim_id, recorded=each) for each in done)


def _in_one_word(last: Recorded, new: Recorded) -> Recorded | None:
    """Both as one, if it is short and both say the same of use, though with other numbers."""
    is_same = read(USED, last.sample) is read(USED, new.sample)
    return _piece(last, new) if is_same else None


def _is_short(first: Recorded, last: Recorded) -> bool:
    return last.sample.end_ms - first.sample.begin_ms <= PIECE_MS


def _piece(last: Recorded, new: Recorded) -> Recorded | None:
    """Both as one, if that is short: active is what was so in either, quiet what was so in both."""
    sample, later = last.sample, new.sample
    is_next = sample.life == later.life and sample.end_ms == later.begin_ms
    is_same = decided_alike(last, new) and new.keep_ms is None
    if not (is_next and is_same and _is_short(last, new)):
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
