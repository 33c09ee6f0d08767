"""What is done to a claim while it is used, one function a command: kernels come and go, a keep.

Called through `Service.execute`, each in a unit of its own.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from jupyter_gpupool.manager.auth.caller import Caller, require_owner
from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.claim_events import Kept, WarningCleared
from jupyter_gpupool.pool.errors import BadRequest, Conflict
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.ids import ClaimId, KernelId
from jupyter_gpupool.pool.kernel import Kernel, attach, detach
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.using import KernelBody

from .arrows import take
from .claims import owned
from .once import OnceKey, once
from .taking_back import RECLAIM, RESERVATION
from .unit import UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachKernel:
    """A Python process uses a claim from now on."""

    caller: Caller
    claim_id: ClaimId
    kernel_id: KernelId
    body: KernelBody


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachKernel:
    """A Python process uses a claim no more."""

    caller: Caller
    claim_id: ClaimId
    kernel_id: KernelId


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepClaim:
    """A user does not want a claim taken as idle for a while; no time at all takes that back."""

    caller: Caller
    claim_id: ClaimId
    duration: timedelta
    reason: str = ""
    key: OnceKey | None = None


def attach_kernel(unit: UnitOfWork, command: AttachKernel) -> None:
    """Write down who uses it; the same process again changes nothing.

    Raises:
        NotFound: If the caller may not know of the claim.
        NotAllowed: If they may, and it is not theirs.
        Conflict: If it is over, or too many use it.
    """
    claim = _own(unit, command.caller, command.claim_id)
    if claim.is_over:
        raise over(claim)
    kernel = Kernel(
        id=command.kernel_id,
        name=command.body.name,
        host=command.body.host,
        boot_id=command.body.boot_id,
        pid=command.body.pid,
        started=command.body.started,
        attached_at=unit.now,
    )
    _put_kernels(unit, claim, attach(claim.kernels, kernel), f"{kernel.title} uses it now.")


def detach_kernel(unit: UnitOfWork, command: DetachKernel) -> None:
    """Forget who used it; whoever is not there is not missed.

    Raises:
        NotFound: If the caller may not know of the claim.
        NotAllowed: If they may, and it is not theirs.
    """
    claim = _own(unit, command.caller, command.claim_id)
    gone = next((kernel for kernel in claim.kernels if kernel.id == command.kernel_id), None)
    if gone is not None:
        left = detach(claim.kernels, gone.id)
        _put_kernels(unit, claim, left, f"{gone.title} uses it no more.")


def keep_claim(unit: UnitOfWork, command: KeepClaim) -> ClaimId:
    """Keep it for so long from now on, and clear what it was warned of.

    Raises:
        NotFound: If the caller may not know of it.
        BadRequest: If that is too long, or its key was used otherwise.
        Conflict: If it has no workers, or is over.
    """
    claim = owned(unit, command.caller, command.claim_id).claim
    longest = unit.moment.settings.longest_keep_alive
    if command.duration > longest:
        raise BadRequest(
            f"A claim can be kept for {format_duration(longest)} at a time.",
            field="for_s",
            hint="Ask for less, and again when that is over.",
        )
    return ClaimId(once(unit, command.key, lambda: _keep(unit, claim, command)))


def over(claim: Claim) -> Conflict:
    """What a kernel is told that would use a claim too late."""
    return Conflict(
        f"Claim {claim.name} is {claim.phase}: no kernel can use it any more.",
        hint="Claim again to go on.",
    )


def _own(unit: UnitOfWork, caller: Caller, claim_id: ClaimId) -> Claim:
    claim = owned(unit, caller, claim_id).claim
    require_owner(caller, claim.owner, f"claim {claim_id}")
    return claim


def _put_kernels(unit: UnitOfWork, claim: Claim, kernels: tuple[Kernel, ...], reason: str) -> None:
    if kernels != claim.kernels:
        record = unit.claims[claim.id]
        unit.put_claim(replace(record, claim=replace(claim, kernels=kernels)))
        unit.record(EventKind.CLAIM_KERNELS, reason, owner=claim.owner, claim_id=claim.id)


def _keep(unit: UnitOfWork, claim: Claim, command: KeepClaim) -> str:
    who = "" if command.caller.user == claim.owner else f" by {command.caller.user}"
    if not command.duration:
        take(unit, claim.id, Kept(reason=f"No longer kept{who}.", duration=None))
        return claim.id
    why = f": {command.reason}" if command.reason else "."
    reason = f"Kept for {format_duration(command.duration)}{who}{why}"
    # Who needs the devices does not need them less for that: only a warning of idleness goes.
    if claim.warning is not None and claim.warning.rule not in (RECLAIM, RESERVATION):
        take(unit, claim.id, WarningCleared(reason=reason))
    take(unit, claim.id, Kept(reason=reason, duration=command.duration))
    return claim.id
