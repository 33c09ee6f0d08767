"""Moving a claim: it gives what it has for somebody else and goes on elsewhere at once.

Called by `planning.py` with what a pass decided. The devices it goes to are promised to it from the
notice on, as those it gives are to whoever they are for. After the grace it hibernates, or if some
of its workers stay, those that go hand over their results; then its promise is granted like any
other. All of that is in the database, so whoever dies in between, it goes on from there.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import ResumeAsked
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.scheduling.decisions import Grant, Move, Promise, Take, TakeHow
from jupyter_gpupool.scheduling.shape import HeldWorker

from .arrows import take
from .records import ClaimRecord, Moving
from .taking_back import take_back
from .unit import UnitOfWork

_ELSEWHERE = "Its results are kept on the way to other devices."


def promises_of(moves: Iterable[Move]) -> Iterator[Promise]:
    """Where each goes to, as something it is promised."""
    for move in moves:
        yield Promise(claim_id=move.claim_id, workers=move.to, reason=move.reason)


def move_claims(unit: UnitOfWork, moves: Iterable[Move], promises: Iterable[Promise]) -> None:
    """Give notice of what goes, and keep for each claim what it goes to.

    Args:
        unit: Where it is written down.
        moves: What a pass decided; of one claim several workers may go.
        promises: All that the same pass promises anybody.
    """
    by_claim: dict[ClaimId, list[Move]] = {}
    for each in moves:
        by_claim.setdefault(each.claim_id, []).append(each)
    promised = tuple(promises)
    for claim_id, mine in by_claim.items():
        _move(unit, unit.claims[claim_id], mine, promised)


def _move(
    unit: UnitOfWork, record: ClaimRecord, moves: list[Move], promises: tuple[Promise, ...]
) -> None:
    going = tuple(worker for each in moves for worker in each.workers)
    to = tuple(worker for each in moves for worker in each.to)
    claim, claimant = record.claim, moves[0].claimant
    reason = f"{moves[0].reason} {_what_it_gets(to)}"
    given = Take(
        claim_id=claim.id,
        workers=going,
        how=TakeHow.SHRINK if moves[0].goes_on else TakeHow.HIBERNATE,
        claimant=claimant,
        reason=reason,
        busy=any(each.busy for each in moves),
    )
    moving = Moving(claimant=claimant, reason=reason)
    unit.put_claim(replace(record, promised=(*record.promised, *to), moving=moving))
    take_back(unit, given, promises, only_if_kept=True)


def _what_it_gets(to: tuple[HeldWorker, ...]) -> str:
    devices = sum(len(worker.devices) for worker in to)
    hosts = len({worker.host_id for worker in to})
    return (
        f"{plural(devices, 'device')} on {plural(hosts, 'host')} kept for it meanwhile; it goes on"
        " there with its results."
    )


def go_on(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """Its results are kept: it waits for nobody, and not for its user either."""
    record = unit.claims[claim_id]
    if record.moving is not None and record.claim.phase is Phase.HIBERNATED:
        take(unit, claim_id, ResumeAsked(reason=_ELSEWHERE, keeps_place=True))


def arrived(unit: UnitOfWork, grant: Grant) -> Grant:
    """What a claim is granted that was moving, so that its user reads what it was for."""
    record = unit.claims[grant.claim_id]
    if record.moving is None or record.promised:
        return grant
    unit.put_claim(replace(record, moving=None))
    return replace(grant, reason=f"Moved: {grant.reason}")
