"""One scheduling pass within a batch: see, plan, carry out.

Called by the service after each batch in which something changed that a plan depends on.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from jupyter_gpupool.manager.certificates import make_secrets
from jupyter_gpupool.pool.claim import WAITING, Phase
from jupyter_gpupool.pool.claim_events import Granted, WorkersChanged
from jupyter_gpupool.pool.ids import LeaseId, UserName
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.rules import SurplusOrder
from jupyter_gpupool.scheduling.decisions import Decisions, Grant
from jupyter_gpupool.scheduling.rounds import Steps, plan
from jupyter_gpupool.scheduling.shape import HeldWorker

from . import promises
from .arrows import take
from .emptying import announce
from .kept_pool import Passed
from .moving import arrived, move_claims, promises_of
from .pool_view import build
from .scheduler_place import scheduler_place
from .sight import Sight
from .standing import View
from .taking_back import clear_void, take_back
from .unit import UnitOfWork

_FEW_CLAIMS = 64
"""So few claims are explained anew with every batch; more are explained when somebody asks."""


_MOST_LOOKS = 3
"""What one look grants of what is free, the next may find that others have a better right to."""


def run_pass(unit: UnitOfWork, live_claims: int) -> Passed:
    """Decide and carry out, until nothing new would be decided where leases may be taken back.

    Args:
        unit: What the pass sees and changes.
        live_claims: How many claims have not ended; few are explained, each of them.
    """
    clear_void(unit, promises.drop_broken(unit))
    passed = _look(unit, explain=live_claims <= _FEW_CLAIMS)
    for _ in range(_MOST_LOOKS - 1):
        if passed.decided.changes_nothing or not steps_of(unit) & (Steps.RECLAIM | Steps.MOVE):
            break
        passed = _look(unit, explain=live_claims <= _FEW_CLAIMS)
    return passed


def _look(unit: UnitOfWork, *, explain: bool) -> Passed:
    passed = _decide(unit, explain=explain)
    decided = passed.decided
    promised = (*decided.promises, *promises_of(decided.moves))
    for taken in decided.takes:
        take_back(unit, taken, promised, only_if_kept=_keeps_who_cannot_hibernate(unit))
    announce(unit, decided.notices)
    promises.keep(unit, decided.promises)
    move_claims(unit, decided.moves, promised)
    for grant in decided.grants:
        _carry_out(unit, grant)
    return passed


def _decide(unit: UnitOfWork, *, explain: bool) -> Passed:
    sight, now_s = unit.moment.sight, unit.now.timestamp()
    # Nothing has happened since the last pass but its own rest.
    passed = sight.kept.go_on() if unit.is_blank else None
    if passed is not None:
        return passed
    view = build(unit, now_s, unit.moment.monotonic_s, sight)
    return sight.kept.decide(view, steps_of(unit), explain=explain)


def ask(
    view: View, now_s: float, monotonic_s: float, sight: Sight | None = None
) -> Callable[[], Decisions]:
    """Look at the books now, for a pass that may be run anywhere, for it looks at nothing else."""
    return partial(plan, build(view, now_s, monotonic_s, sight), steps_of(view))


def steps_of(view: View) -> Steps:
    """What the policy lets a pass do."""
    policy, steps = view.policy.policy, Steps.GRANT
    if policy.rules.may_move:
        steps |= Steps.MOVE
    if policy.reclaims:
        steps |= Steps.RECLAIM | Steps.OUTRANK
    return steps


def _keeps_who_cannot_hibernate(view: View) -> bool:
    """Whether a claim whose results cannot be kept keeps its place, whoever is in line before it.

    So it is by attained service: whoever gives way there has done nothing wrong but to run long.
    """
    return view.policy.policy.rules.surplus_order is SurplusOrder.LEAST_ATTAINED_SERVICE


def _carry_out(unit: UnitOfWork, grant: Grant) -> None:
    claim = unit.claims[grant.claim_id].claim
    promises.fulfil(unit, grant)
    grant = arrived(unit, grant)
    if claim.phase in WAITING:
        _start(unit, grant)
    for lease in _leases(unit, grant):
        unit.put_lease(lease)
    if claim.phase is Phase.RUNNING:
        take(unit, grant.claim_id, WorkersChanged(reason=grant.reason))


def _start(unit: UnitOfWork, grant: Grant) -> None:
    life = unit.moment.settings.longest_life
    place = scheduler_place(unit, unit.claims[grant.claim_id], grant.workers)
    granted = Granted(reason=grant.reason, scheduler_host=place, longest_life=life)
    take(unit, grant.claim_id, granted)
    record = unit.claims[grant.claim_id]
    made = record.secrets or make_secrets(unit.now, life)
    # Fixed for good: a mapping that changes later must not split a claim between two users.
    os_user = record.os_user if record.start else _os_user(unit, record.claim.owner)
    # One that resumes has its scheduler still, and that belongs to its last start.
    start = record.start if record.claim.hibernation is not None else record.start + 1
    unit.put_claim(replace(record, start=start, secrets=made, os_user=os_user))


def _os_user(unit: UnitOfWork, owner: UserName) -> str | None:
    if not unit.moment.settings.run_as_users:
        return None
    user = unit.users.get(owner)
    return owner if user is None or user.os_user is None else user.os_user


def _leases(unit: UnitOfWork, grant: Grant) -> Iterator[Lease]:
    lent_s, share = grant.lent_until_s, _share(unit, grant)
    for worker in grant.workers:
        first, *further = worker.devices
        yield Lease(
            id=LeaseId(f"l-{secrets.token_hex(8)}"),
            claim_id=grant.claim_id,
            host_id=worker.host_id,
            device=first,
            further=tuple(further),
            share=share,
            phase=LeasePhase.GRANTED,
            granted_at=unit.now,
            phase_since=unit.now,
            reason=grant.reason,
            lent_until=None if lent_s is None else datetime.fromtimestamp(lent_s, UTC),
        )


def _share(unit: UnitOfWork, grant: Grant) -> int:
    """Thousandths of its device that each worker of a claim gets, now and later: the same for all.

    A part that is told in bytes may come to a device that is larger than the smallest of them.
    """
    held = next(unit.leases_of(grant.claim_id), None)
    if held is not None:
        return held.share
    needs = unit.claims[grant.claim_id].claim.request.devices
    return max(needs.share_of(_memory_bytes(unit, worker)) for worker in grant.workers)


def _memory_bytes(unit: UnitOfWork, worker: HeldWorker) -> int:
    found = unit.hosts[worker.host_id].devices
    return next(device.memory_bytes for device in found if device.uuid == worker.devices[0])
