"""What should run on one host, derived from the books: pure, and whole each time.

Called by the service after each commit for every host it may concern.
"""

from collections.abc import Iterable, Iterator

from jupyter_gpupool.manager.certificates import ClaimSecrets, Party
from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.hibernation import HibernationTerms
from jupyter_gpupool.pool.ids import HostId, LeaseId
from jupyter_gpupool.pool.kernel import Kernel
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.request import ClaimRequest
from jupyter_gpupool.protocol.keeping import Wish
from jupyter_gpupool.protocol.link import (
    TlsCredentials,
    WantedClaim,
    WantedHolder,
    WantedKernel,
    WantedScheduler,
    WantedWorker,
)
from jupyter_gpupool.protocol.using import OWN_ENVIRONMENT

from .books import Books
from .kept_room import waits_for_room
from .records import ClaimRecord
from .unit import UnitOfWork

_RUNS = (
    Phase.STARTING,
    Phase.RUNNING,
    Phase.HIBERNATING,
    Phase.HIBERNATED,
    Phase.RESUMING,
)
_STAYS = (LeasePhase.GRANTED, LeasePhase.RUNNING, LeasePhase.RETIRING)


def desired_for(host_id: HostId, view: Books | UnitOfWork) -> tuple[WantedClaim, ...]:
    """All claims with a scheduler or a worker on this host, in a fixed order."""
    leased = {lease.claim_id for lease in view.leases_on(host_id)}
    here = [r for r in view.placed() if r.claim.id in leased or _is_placed_on(r, host_id)]
    return tuple(_wanted(host_id, view, sorted(here, key=lambda record: record.claim.id)))


def _is_placed_on(record: ClaimRecord, host_id: HostId) -> bool:
    place = record.claim.scheduler
    return place is not None and place.host_id == host_id


def excess(claim: Claim, leases: Iterable[Lease]) -> int:
    """How many workers a claim has beyond its bounds that nobody has chosen to go yet."""
    return sum(lease.counts for lease in leases) - claim.bounds.maximum


def _wanted(
    host_id: HostId, view: Books | UnitOfWork, records: list[ClaimRecord]
) -> Iterator[WantedClaim]:
    for record in records:
        claim, place = record.claim, record.claim.scheduler
        if claim.phase not in _RUNS or place is None or record.secrets is None:
            continue
        leases = [lease for lease in view.leases_of(claim.id) if lease.phase in _STAYS]
        here = sorted((lease for lease in leases if lease.host_id == host_id), key=lambda x: x.id)
        if here or place.host_id == host_id:
            terms = view.policy.policy.hibernation
            scheduler = _scheduler(record, host_id, leases, terms)
            yield _wanted_claim(record, record.secrets, here, scheduler, terms)


def _scheduler(
    record: ClaimRecord, host_id: HostId, leases: list[Lease], terms: HibernationTerms
) -> WantedScheduler | None:
    claim, secrets = record.claim, record.secrets
    if claim.scheduler is None or claim.scheduler.host_id != host_id or secrets is None:
        return None
    return WantedScheduler(
        credentials=_credentials(secrets, secrets.scheduler),
        dashboard_prefix=secrets.dashboard_prefix,
        keep_workers=claim.bounds.maximum if excess(claim, leases) > 0 else None,
        retire=tuple(sorted(_elsewhere_retiring(claim, leases))),
        wish=_wish(claim),
        quota_bytes=terms.quota_bytes,
    )


def _wish(claim: Claim) -> Wish:
    """What becomes of its results. They go back only to workers of a start that has succeeded."""
    if claim.hibernation is not None and claim.phase is not Phase.RUNNING:
        return Wish.HIBERNATED
    return Wish.AWAKE if claim.warning is None else Wish.SURVEYED


def _wanted_claim(
    record: ClaimRecord,
    secrets: ClaimSecrets,
    here: list[Lease],
    scheduler: WantedScheduler | None,
    terms: HibernationTerms,
) -> WantedClaim:
    claim = record.claim
    assert claim.scheduler is not None, "the caller checked it"
    return WantedClaim(
        claim_id=claim.id,
        start=record.start,
        owner=claim.owner,
        os_user=record.os_user,
        environment=claim.request.environment,
        interpreter=_interpreter(claim.request),
        options=claim.request.options,
        env=dict(claim.request.env),
        scheduler=scheduler,
        scheduler_address=None if scheduler is not None else claim.scheduler.address,
        worker_credentials=_credentials(secrets, secrets.worker),
        workers=tuple(_wanted_worker(claim, lease) for lease in here),
        holder=None if scheduler is None else _holder(claim, terms),
        kernels=tuple(map(_wanted_kernel, claim.kernels)),
    )


def _holder(claim: Claim, terms: HibernationTerms) -> WantedHolder | None:
    if claim.hibernation is None or waits_for_room(claim, terms):
        return None
    return WantedHolder(memory_bytes=terms.memory_bytes, quota_bytes=terms.quota_bytes)


def _interpreter(request: ClaimRequest) -> str:
    # Of no use elsewhere, and where people keep their files is nobody's business there.
    return request.kernel_interpreter if request.environment == OWN_ENVIRONMENT else ""


def _wanted_worker(claim: Claim, lease: Lease) -> WantedWorker:
    # Its scheduler may be elsewhere: its own host has to know that its end is no accident.
    return WantedWorker(
        lease_id=lease.id,
        device=lease.device,
        further=lease.further,
        share=lease.share,
        retire=_retires(claim, lease),
    )


def _wanted_kernel(kernel: Kernel) -> WantedKernel:
    return WantedKernel(
        kernel_id=kernel.id,
        host=kernel.host,
        boot_id=kernel.boot_id,
        pid=kernel.pid,
        started=kernel.started,
    )


def _elsewhere_retiring(claim: Claim, leases: list[Lease]) -> Iterator[LeaseId]:
    if claim.phase is Phase.HIBERNATING:
        return  # all of them go together, once the scheduler has all results elsewhere
    for lease in leases:
        if lease.phase is LeasePhase.RETIRING and not _is_beside_scheduler(claim, lease):
            yield lease.id


def _retires(claim: Claim, lease: Lease) -> bool:
    # Beside its scheduler that one says who goes, when a claim hibernates; elsewhere nobody would.
    is_told = claim.phase is Phase.HIBERNATING and _is_beside_scheduler(claim, lease)
    return lease.phase is LeasePhase.RETIRING and not is_told


def _is_beside_scheduler(claim: Claim, lease: Lease) -> bool:
    return claim.scheduler is not None and claim.scheduler.host_id == lease.host_id


def _credentials(secrets: ClaimSecrets, party: Party) -> TlsCredentials:
    return TlsCredentials(ca=secrets.ca, certificate=party.certificate, key=party.key)
