"""Emptying devices for a reservation: the notice, and the end of it shortly before the window.

Called by `planning.py` with what a pass says has to go, all of it anew each time; what a pass says
no more is void. Kept in memory alone: after a restart the next pass says it again, and once the
window is open its queue's raised guarantee does the rest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from jupyter_gpupool.pool import lease as leases
from jupyter_gpupool.pool.claim import WAITING, Claim, Phase
from jupyter_gpupool.pool.claim_events import Warned, WarningCleared
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.scheduling.decisions import Notice

from .arrows import take
from .records import AnnouncedKey
from .taking_back import RESERVATION, asked_back, stop_starting, take_now
from .unit import UnitOfWork

_BEFORE = timedelta(minutes=1)
"""So long before the window devices are taken: results move, processes end, memory is proven free.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """Workers that a claim gives back for a reservation.

    Attributes:
        notice: What the pass said; None for one that an earlier manager gave.
        deadline: When they are taken.
    """

    claim_id: ClaimId
    notice: Notice | None
    deadline: datetime


def announce(unit: UnitOfWork, notices: Iterable[Notice]) -> None:
    """Tell claims what they have to give back by when, and others that they need not any more."""
    said = {(notice.claim_id, notice.booking): notice for notice in notices}
    for key, notice in said.items():
        before = unit.announced.get(key) or _of_earlier_manager(unit, notice)
        deadline = _deadline(unit, notice) if before is None else before.deadline
        made = Announced(claim_id=notice.claim_id, notice=notice, deadline=deadline)
        if made != unit.announced.get(key):
            unit.announced[key] = made
        _warn(unit, made, notice)
    for key in [key for key, _ in unit.announced.items() if key not in said]:
        _void(unit, key)


def take_announced(unit: UnitOfWork, key: AnnouncedKey) -> None:
    """The deadline is there: what was announced goes. A claim that keeps nothing ends."""
    made = unit.announced.get(key)
    if made is None or made.deadline > unit.now:
        return
    del unit.announced[key]
    record = unit.claims.get(made.claim_id)
    if made.notice is None or record is None or record.claim.is_over:
        return
    if record.claim.phase is Phase.STARTING:
        stop_starting(unit, made.notice)
        return
    _clear_warning(unit, made.claim_id, "The reservation begins.")
    due = leases.Notice(deadline=unit.now, claimants=_claimants(unit, made.notice.booking))
    for lease in asked_back(unit, made.notice):
        unit.put_lease(replace(lease, notice=due))
    take_now(unit, made.claim_id, made.notice.reason)


def _claimants(unit: UnitOfWork, booking: str) -> tuple[ClaimId, ...]:
    """Whoever waits in the queue that has reserved, or below it, the oldest first."""
    reservation = unit.reservations.get(booking)
    if reservation is None:
        return ()
    claims = (record.claim for record in unit.claims.values() if record.claim.phase in WAITING)
    waiting = [claim for claim in claims if reservation.queue in _queues(unit, claim)]
    waiting.sort(key=lambda claim: (claim.created_at, claim.id))
    return tuple(claim.id for claim in waiting)


def _queues(unit: UnitOfWork, claim: Claim) -> Sequence[str]:
    queue = unit.policy.queue_of(claim)
    return () if queue is None else unit.policy.tree.path(queue.name)


def _void(unit: UnitOfWork, key: AnnouncedKey) -> None:
    del unit.announced[key]
    if all(other[0] != key[0] for other, _ in unit.announced.items()):
        _clear_warning(unit, key[0], "What it was warned of is needed no more.")


def _of_earlier_manager(unit: UnitOfWork, notice: Notice) -> Announced | None:
    return unit.announced.get((notice.claim_id, ""))


def _deadline(unit: UnitOfWork, notice: Notice) -> datetime:
    """A minute before the window, and never sooner than a busy claim's grace."""
    soonest = unit.now + timedelta(seconds=unit.policy.policy.grace_s)
    return max(soonest, datetime.fromtimestamp(notice.by_s, UTC) - _BEFORE)


def _warn(unit: UnitOfWork, made: Announced, notice: Notice) -> None:
    """Warn it once it runs, unless it is warned of this already, or of something that is sooner."""
    record = unit.claims.get(made.claim_id)
    if record is None or record.claim.phase is not Phase.RUNNING:
        return
    if record.claim.warning is None:
        after = made.deadline - unit.now
        take(unit, made.claim_id, Warned(reason=notice.reason, rule=RESERVATION, after=after))


def _clear_warning(unit: UnitOfWork, claim_id: ClaimId, reason: str) -> None:
    record = unit.claims.get(claim_id)
    warning = None if record is None else record.claim.warning
    if warning is not None and warning.rule == RESERVATION and warning.evidence is None:
        take(unit, claim_id, WarningCleared(reason=reason))
