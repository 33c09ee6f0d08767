"""One scheduling pass within a batch: see, plan, grant.

Called by the service after each batch in which something changed that a plan depends on.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from jupyter_gpupool.manager.certificates import make_secrets
from jupyter_gpupool.pool.claim import WAITING, Phase
from jupyter_gpupool.pool.claim_events import Granted, WorkersChanged
from jupyter_gpupool.pool.ids import ClaimId, LeaseId, UserName
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.scheduling.passes import plan
from jupyter_gpupool.scheduling.snapshot import Grant, Plan

from .arrows import take
from .snapshot import build, could_any_start, free_devices
from .unit import UnitOfWork

_FEW_CLAIMS = 64
"""So few claims are explained anew with every batch; more are explained when somebody asks."""


def run_pass(
    unit: UnitOfWork, live_claims: int, arrived: Sequence[ClaimId] | None = None
) -> Plan | None:
    """Decide and grant, or None if nothing could be granted and explaining would be slow.

    Args:
        unit: What the pass sees and changes.
        live_claims: How many claims have not ended.
        arrived: The new claims if nothing else is new since the last pass; None if more is.
    """
    if live_claims > _FEW_CLAIMS and not _may_grant(unit, arrived):
        return None
    decided = plan(build(unit, unit.moment.monotonic_s))
    for grant in decided.grants:
        _carry_out(unit, grant)
    return decided


def _may_grant(unit: UnitOfWork, arrived: Sequence[ClaimId] | None) -> bool:
    # Whoever the last pass left waiting would be left waiting again: thousands may.
    if arrived is None:
        return any(free_devices(unit).values())
    return could_any_start(unit, [unit.claims[claim_id] for claim_id in arrived])


def _carry_out(unit: UnitOfWork, grant: Grant) -> None:
    claim = unit.claims[grant.claim_id].claim
    if claim.phase in WAITING:
        _start(unit, grant)
    _add_leases(unit, grant)
    if claim.phase is Phase.RUNNING:
        take(unit, grant.claim_id, WorkersChanged(reason=grant.reason))


def _start(unit: UnitOfWork, grant: Grant) -> None:
    life = unit.moment.settings.longest_life
    granted = Granted(reason=grant.reason, scheduler_host=grant.scheduler_host, longest_life=life)
    take(unit, grant.claim_id, granted)
    record = unit.claims[grant.claim_id]
    made = record.secrets or make_secrets(unit.now, life)
    # Fixed for good: a mapping that changes later must not split a claim between two users.
    os_user = record.os_user if record.start else _os_user(unit, record.claim.owner)
    unit.put_claim(replace(record, start=record.start + 1, secrets=made, os_user=os_user))


def _os_user(unit: UnitOfWork, owner: UserName) -> str | None:
    if not unit.moment.settings.run_as_users:
        return None
    user = unit.users.get(owner)
    return owner if user is None or user.os_user is None else user.os_user


def _add_leases(unit: UnitOfWork, grant: Grant) -> None:
    for placed in grant.devices:
        lease = Lease(
            id=LeaseId(f"l-{secrets.token_hex(8)}"),
            claim_id=grant.claim_id,
            host_id=placed.host_id,
            device=placed.device,
            phase=LeasePhase.GRANTED,
            granted_at=unit.now,
            phase_since=unit.now,
            reason=grant.reason,
        )
        unit.put_lease(lease)
