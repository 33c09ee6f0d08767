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
from .unit import UnitOfWork

_MAY_TAKE = (*WAITING, Phase.STARTING, Phase.RUNNING)


def drop_broken(unit: UnitOfWork) -> frozenset[ClaimId]:
    """Forget promises to whoever wants them no more, and those on what is no longer there.

    Returns:
        Whoever is promised anything still.
    """
    promised = list(unit.promised())
    for record in promised:
        if not _wants_still(unit, record) or not _are_there(unit, record.promised):
            unit.put_claim(replace(record, promised=()))
    ids = (record.claim.id for record in promised)
    return frozenset(claim_id for claim_id in ids if unit.claims[claim_id].promised)


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
    claim = record.claim
    if claim.phase not in _MAY_TAKE:
        return False
    has = sum(lease.counts for lease in unit.leases_of(claim.id))
    return has + len(record.promised) <= max(1, claim.bounds.maximum)


def _are_there(unit: UnitOfWork, workers: Iterable[HeldWorker]) -> bool:
    for worker in workers:
        host = unit.hosts.get(worker.host_id)
        if host is None or host.phase is HostPhase.LOST:
            return False
        if not {device.uuid for device in host.devices}.issuperset(worker.devices):
            return False
    return True
