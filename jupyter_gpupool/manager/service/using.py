"""What is done to a claim while it is used, one function a command: kernels come and go, a keep.

Called through `Service.execute`, each in a unit of its own.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta

from jupyter_gpupool.manager.auth.caller import Caller, require_owner
from jupyter_gpupool.pool.claim import Claim, Warning_
from jupyter_gpupool.pool.claim_events import Kept, WarningCleared
from jupyter_gpupool.pool.errors import Conflict
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.idle_rule import Ground, KeepAlive
from jupyter_gpupool.pool.ids import ClaimId, KernelId
from jupyter_gpupool.pool.kernel import Kernel, attach, detach, gone
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.using import KernelBody
from jupyter_gpupool.scheduling.idle import deciding
from jupyter_gpupool.scheduling.idle_watch import Watch
from jupyter_gpupool.scheduling.keep_alive import kept

from .arrows import take
from .claims import owned
from .idle_watching import put_watch, situation_of, watch_of
from .once import OnceKey, once
from .records import ClaimRecord
from .staying import RECLAIM
from .taking_back import RESERVATION
from .unit import UnitOfWork

_ANY_TIME_S = 315_360_000.0
"""Ten years: no rule asks how often."""


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


def kernels_gone(unit: UnitOfWork, claim_id: ClaimId, ids: Collection[KernelId]) -> None:
    """Write down that kernels of a claim have ended without a word, as somebody knows who must."""
    record = unit.claims.get(claim_id)
    if record is None or record.claim.is_over:
        return
    claim = record.claim
    for kernel in claim.kernels:
        if kernel.id in ids and kernel.gone_since is None:
            claim = replace(claim, kernels=gone(claim.kernels, kernel.id, unit.now))
            reason = f"{kernel.title} has ended without giving the claim back."
            unit.record(EventKind.CLAIM_KERNELS, reason, owner=claim.owner, claim_id=claim_id)
    if claim is not record.claim:
        unit.put_claim(replace(record, claim=claim))


def keep_claim(unit: UnitOfWork, command: KeepClaim) -> ClaimId:
    """Keep it for so long from now on, and clear what it was warned of.

    Raises:
        NotFound: If the caller may not know of it.
        BadRequest: If that is more than the rule on idle claims allows that is for it, it lacks a
            reason that the rule asks for, or its key was used otherwise.
        Conflict: If it has no workers, or is over.
    """
    record = owned(unit, command.caller, command.claim_id)
    return ClaimId(once(unit, command.key, lambda: _keep(unit, record, command)))


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


def _keep(unit: UnitOfWork, record: ClaimRecord, command: KeepClaim) -> str:
    claim, watch = record.claim, _kept_watch(unit, record, command)
    who = "" if command.caller.user == claim.owner else f" by {command.caller.user}"
    if not command.duration:
        take(unit, claim.id, Kept(reason=f"No longer kept{who}.", duration=None))
        put_watch(unit, claim.id, watch, save=True)
        return claim.id
    why = f": {command.reason}" if command.reason else "."
    reason = f"Kept for {format_duration(command.duration)}{who}{why}"
    # Who needs the devices does not need them less for that: only a warning of idleness goes.
    if claim.warning is not None and _is_postponed(claim.warning):
        take(unit, claim.id, WarningCleared(reason=reason))
    take(unit, claim.id, Kept(reason=reason, duration=command.duration))
    put_watch(unit, claim.id, watch, save=True)
    return claim.id


def _is_postponed(warning: Warning_) -> bool:
    """Whether what was announced waits while a claim is kept: others' needs do not."""
    if warning.evidence is None:
        return warning.rule not in (RECLAIM, RESERVATION)
    return warning.evidence.ground is not Ground.HELD_LONG


def _kept_watch(unit: UnitOfWork, record: ClaimRecord, command: KeepClaim) -> Watch:
    """The claim's watch from now on, if the rule that is for it allows that."""
    watch = watch_of(unit, record.claim)
    situation = situation_of(unit, record, watch)
    rule = deciding(situation.rules, situation.subject, unit.now)
    longest_s = unit.moment.settings.longest_keep_alive.total_seconds()
    anything = KeepAlive(longest_s=longest_s, per_day_s=_ANY_TIME_S)
    bounds = anything if rule is None else rule.keep_alive
    for_ms = round(command.duration.total_seconds() * 1000)
    return kept(watch, bounds, for_ms, command.reason)
