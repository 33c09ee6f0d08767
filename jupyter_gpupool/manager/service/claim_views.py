"""Claims as a pass sees them, made from the books.

Called by `pool_view.py`, which says of which claims anything was stirred: all others are as they
were seen before. A lease that somebody is about to take back is none of its claim's any
more: the pass has decided that already, and its device is kept for whoever it is taken for.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from jupyter_gpupool.pool.claim import WAITING, Claim, Phase
from jupyter_gpupool.pool.host import Host, HostPhase
from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.request import ClaimRequest
from jupyter_gpupool.pool.rules import SurplusOrder
from jupyter_gpupool.scheduling.pool_view import ClaimView
from jupyter_gpupool.scheduling.shape import HeldWorker

from .accounting import service_s
from .environments import Barring
from .giving_up import MOST_FAILURES, failures_in_window
from .records import ClaimRecord
from .sight import Sight
from .standing import View
from .staying import ASKED_AGAIN_S
from .stirred import Stirred
from .worker_shapes import Rooms, worker_shape

_HOLDS = (Phase.STARTING, Phase.RUNNING)
_ON_THE_WAY = (Phase.HIBERNATING, Phase.HIBERNATED)
"""Where a claim is that has given what it had and is not ready to go on elsewhere."""


def claim_views(
    view: View, sight: Sight, news: Stirred | None, now_s: float, monotonic_s: float
) -> tuple[ClaimView, ...]:
    """Every claim that waits, holds anything that stays, or is on its way to other devices.

    Args:
        view: The books, or a unit of work on them.
        sight: What was seen of claims before.
        news: Which of them to look at anew; None is all.
        now_s: As for the whole view.
        monotonic_s: As for the whole view.
    """
    by_service = view.policy.policy.rules.surplus_order is SurplusOrder.LEAST_ATTAINED_SERVICE
    awaiting = frozenset(_awaiting(view.noticed()))
    barring, looked_at = sight.barring, (*sight.varying, *(sight.awaiting ^ awaiting))
    if news is None or news.all_claims or by_service or barring is None:
        barring = sight.barring = Barring(view)
        looked_at = tuple(claim_id for claim_id, _ in view.claims.items())
        sight.claims.begin_anew(looked_at)
    else:
        looked_at = (*news.claims, *looked_at)
    sight.awaiting = awaiting
    looking = _Looking(
        view, barring, awaiting, by_service=by_service, now_s=now_s, monotonic_s=monotonic_s
    )
    for claim_id in looked_at:
        _look_at(claim_id, view, sight, looking)
    return sight.claims.all()


def _look_at(claim_id: ClaimId, view: View, sight: Sight, looking: "_Looking") -> None:
    record = view.claims.get(claim_id)
    if record is None or record.claim.phase is Phase.ENDED:
        sight.claims.forget(claim_id)
        sight.varying.pop(claim_id, None)
        return
    sight.claims.keep(claim_id, looking.at(record))
    if looking.varies(record):
        sight.varying[claim_id] = None
    else:
        sight.varying.pop(claim_id, None)


class _Looking:
    """One pass's look at claims."""

    def __init__(
        self,
        view: View,
        barring: Barring,
        awaiting: frozenset[ClaimId],
        *,
        by_service: bool,
        now_s: float,
        monotonic_s: float,
    ) -> None:
        self._view = view
        self._barring = barring
        self._rooms = Rooms(view)
        self._awaiting = awaiting
        self._by_service = by_service
        self._now_s = now_s
        self._monotonic_s = monotonic_s

    def at(self, record: ClaimRecord) -> ClaimView | None:
        """The claim as it stands, if passes see it."""
        phase = record.claim.phase
        if phase in WAITING:
            return self._make(record, self._leases_of_waiting(record))
        if phase in _HOLDS:
            leases = tuple(self._view.leases_of(record.claim.id))
            is_seen = record.moving is not None or not _is_all_taken(leases)
            return self._make(record, leases) if is_seen else None
        is_on_its_way = phase in _ON_THE_WAY and record.moving is not None
        return self._make(record, ()) if is_on_its_way and record.promised else None

    def varies(self, record: ClaimRecord) -> bool:
        """Whether time alone, or leases that are not the claim's, may change what is seen of it."""
        by_leases = record.claim.request.devices.memory_bytes
        by_time = self._view.failures.get(record.claim.id) or self._stays(record)
        return bool(by_leases or by_time)

    def _leases_of_waiting(self, record: ClaimRecord) -> tuple[Lease, ...]:
        """What a claim that waits is still giving back, if anybody asks what it has had."""
        return tuple(self._view.leases_of(record.claim.id)) if self._by_service else ()

    def _awaits(self, record: ClaimRecord, leases: Iterable[Lease]) -> bool:
        """Whether others still hold what they give for it, or it is itself not ready to go on."""
        if record.claim.id in self._awaiting:
            return True
        if record.moving is None:
            return False  # as good as all, and each pass asks each
        if record.claim.phase in _ON_THE_WAY:
            return True
        return any(x.counts and not x.stays for x in leases)

    def _stays(self, record: ClaimRecord) -> bool:
        """Whether its results could not be kept lately: it is not asked to hibernate again."""
        stayed = record.stayed_at
        return stayed is not None and self._now_s < stayed.timestamp() + ASKED_AGAIN_S

    def _make(self, record: ClaimRecord, every: tuple[Lease, ...]) -> ClaimView:
        """All together: nothing of it decides anything by itself."""
        view, claim, request = self._view, record.claim, record.claim.request
        barred = self._barring.of(record)
        leases = [lease for lease in every if lease.stays]
        shape = worker_shape(view, record, barred, self._rooms)
        too_large = self._rooms.too_large_in_words(shape) if shape.device_memory_bytes else ""
        rank, is_firm = view.policy.rank_of(claim)
        minimum, maximum = self._bounds(record, len(leases))
        granted_s = [lease.granted_at.timestamp() for lease in leases]
        lent_s = [x.lent_until.timestamp() for x in leases if x.lent_until is not None]
        return ClaimView(
            id=claim.id,
            owner=claim.owner,
            queue=view.policy.leaf_of(claim),
            priority=rank,
            firm=is_firm,
            since_s=claim.wanted_since.timestamp(),
            minimum=minimum,
            maximum=maximum,
            worker=shape,
            held=tuple(HeldWorker(lease.host_id, lease.devices) for lease in leases),
            promised=record.promised,
            awaits=self._awaits(record, every),
            started_s=min(granted_s, default=None),
            attained_s=self._attained_s(record, every),
            idle=_is_idle(claim),
            can_hibernate=self._can_hibernate(record),
            hibernated=claim.phase is Phase.RESUMING,
            expected_s=_seconds(request.expected),
            time_limit_s=_seconds(request.time_limit),
            deadline_s=None if request.deadline is None else request.deadline.timestamp(),
            lent_until_s=min(lent_s, default=None),
            near=_near(view, request),
            barred_why=" ".join(filter(None, (barred.why, too_large))),
            scheduler_host=None if claim.scheduler is None else claim.scheduler.host_id,
        )

    def _can_hibernate(self, record: ClaimRecord) -> bool:
        claim = record.claim
        # Whose results are on their way back cannot be asked to keep them again just now.
        is_whole = claim.phase in WAITING or not claim.awaits_results
        return is_whole and not self._stays(record)

    def _attained_s(self, record: ClaimRecord, leases: Sequence[Lease]) -> float:
        if not self._by_service:
            return 0.0  # nobody asks
        return record.served_s + sum(service_s(lease, self._now_s) for lease in leases)

    def _bounds(self, record: ClaimRecord, held: int) -> tuple[int, int]:
        claim = record.claim
        if claim.phase in _ON_THE_WAY:
            return len(record.promised), len(record.promised)
        if claim.phase in WAITING:
            # It may shrink to nothing, but it starts with at least one worker.
            return max(1, claim.bounds.minimum), max(1, claim.bounds.maximum)
        # One that runs goes on with what is left of it, and takes what comes one by one.
        minimum = min(held, max(1, claim.bounds.minimum))
        return minimum, claim.bounds.maximum if self._may_grow(record) else held

    def _may_grow(self, record: ClaimRecord) -> bool:
        if self._phase_of_host(record) is not HostPhase.CONNECTED:
            return False
        if any(lease.notice is not None for lease in self._view.leases_of(record.claim.id)):
            return False
        return failures_in_window(self._view, record, self._monotonic_s) < MOST_FAILURES

    def _phase_of_host(self, record: ClaimRecord) -> HostPhase | None:
        """How the host of its scheduler is."""
        place = record.claim.scheduler
        host = self._view.hosts.get(place.host_id) if place is not None else None
        return None if host is None else host.phase


def _is_idle(claim: Claim) -> bool:
    """Whether a rule on idle claims has said so to its user, and it does nothing since."""
    evidence = None if claim.warning is None else claim.warning.evidence
    return evidence is not None and evidence.ground in (Ground.IDLE, Ground.ORPHANED)


def _awaiting(noticed: Iterable[Lease]) -> Iterator[ClaimId]:
    """For whom leases are being taken that are not given back yet."""
    for lease in noticed:
        if lease.counts and lease.notice is not None:
            yield from lease.notice.claimants


def _is_all_taken(leases: Iterable[Lease]) -> bool:
    """Whether nothing of a claim stays because somebody is taking it."""
    held = tuple(leases)
    return any(x.notice is not None for x in held) and not any(x.stays for x in held)


def _near(view: View, request: ClaimRequest) -> frozenset[HostId]:
    """The hosts that a user means by a host's name, a label, or the value of one."""
    if not request.near:
        return frozenset()
    return frozenset(host.id for host in view.hosts.values() if _is_meant(host, request.near))


def _is_meant(host: Host, near: str) -> bool:
    names = {host.name, host.id, *host.labels, *(x.partition("=")[2] for x in host.labels)}
    return near in names


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
