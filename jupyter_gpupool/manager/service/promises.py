"""What a claim is promised: devices that are being freed for it and that nobody else gets.

Kept with the claim, so that a manager that was away keeps its word. Called by `planning.py`, before
a pass to forget what cannot be kept, and after it to write down what it promises anew.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from jupyter_gpupool.pool.claim import WAITING, Phase
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.scheduling.decisions import Grant, Promise
from jupyter_gpupool.scheduling.shape import HeldWorker

from .records import ClaimRecord
from .staying import is_under_notice, stop_moving
from .unit import UnitOfWork

_MAY_TAKE = (*WAITING, Phase.STARTING, Phase.RUNNING)
_ON_THE_WAY = (Phase.HIBERNATING, Phase.HIBERNATED)
"""Where a claim is that has begun to move and does not wait for devices yet."""


def drop_broken(unit: UnitOfWork) -> frozenset[ClaimId]:
    """Forget promises to whoever wants them no more, and those on what is no longer there.

    Returns:
        Whoever is promised anything still.
    """
    promised = list(unit.promised())
    for record in promised:
        if not _wants_still(unit, record) or not _are_there(unit, record.promised):
            _break(unit, record)
    ids = [record.claim.id for record in promised]
    for claim_id in ids:
        _stop_needless(unit, unit.claims[claim_id])
    return frozenset(claim_id for claim_id in ids if unit.claims[claim_id].promised)


def _break(unit: UnitOfWork, record: ClaimRecord) -> None:
    """It is promised nothing any more; if it has not begun to move, it does not."""
    unit.put_claim(replace(record, promised=()))
    if record.moving is not None and record.claim.phase not in _ON_THE_WAY:
        stop_moving(unit, record.claim.id)


def _stop_needless(unit: UnitOfWork, record: ClaimRecord) -> None:
    """A claim that has not begun to move stays if whom it is for needs it no more."""
    moving = record.moving
    if moving is None or not is_under_notice(unit, record.claim.id):
        return
    claimant = unit.claims.get(moving.claimant)
    if claimant is None or not claimant.promised:
        stop_moving(unit, record.claim.id)


def keep(unit: UnitOfWork, promises: Iterable[Promise]) -> None:
    """Write down what a pass promises."""
    for promise in promises:
        record = unit.claims[promise.claim_id]
        unit.put_claim(replace(record, promised=(*record.promised, *promise.workers)))


def fulfil(unit: UnitOfWork, grant: Grant) -> None:
    """What is granted is promised no more."""
    record = unit.claims[grant.claim_id]
    # Two workers may be promised parts of the same device.
    left = tuple((Counter(record.promised) - Counter(grant.workers)).elements())
    if left != record.promised:
        unit.put_claim(replace(record, promised=left))


def _wants_still(unit: UnitOfWork, record: ClaimRecord) -> bool:
    claim, leases = record.claim, unit.leases_of(record.claim.id)
    if record.moving is not None:
        # What it gives for others is not yet gone.
        is_alive = claim.phase in (*_MAY_TAKE, *_ON_THE_WAY)
        has = sum(lease.stays for lease in leases)
        return is_alive and has + len(record.promised) <= max(1, claim.bounds.maximum)
    if claim.phase not in _MAY_TAKE:
        return False
    has = sum(lease.counts for lease in leases)
    return has + len(record.promised) <= max(1, claim.bounds.maximum)


def _are_there(unit: UnitOfWork, workers: Iterable[HeldWorker]) -> bool:
    for worker in workers:
        host = unit.hosts.get(worker.host_id)
        if host is None or host.phase is HostPhase.LOST:
            return False
        if not {device.uuid for device in host.devices}.issuperset(worker.devices):
            return False
    return True
