"""Carries out what comes of watching a claim: warns its user, clears that, takes what is due.

Called by `idle_watching`. What others need is taken by `taking_back`; its warnings go first, for
one claim shows one warning.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.claim_events import (
    EndAsked,
    EndKind,
    HibernateAsked,
    Rescaled,
    Warned,
    WarningCleared,
)
from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.idle_rule import Otherwise
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.request import OnIdle, WorkerBounds
from jupyter_gpupool.scheduling.idle_own_words import Held, taking_in_words, warning_in_words
from jupyter_gpupool.scheduling.idle_verdicts import Cleared, Verdict
from jupyter_gpupool.scheduling.idle_wording import why_cleared

from .arrows import settle, take
from .hibernating import begin_hibernating
from .idle_subjects import held_of

if TYPE_CHECKING:
    from .unit import UnitOfWork


def warn(unit: "UnitOfWork", claim_id: ClaimId, verdict: Verdict, after: timedelta) -> bool:
    """Tell its user what will be taken, and when; False if it is under another warning."""
    assert verdict.evidence is not None, "whoever warns knows why"
    evidence, warning = verdict.evidence, unit.claims[claim_id].claim.warning
    if warning is not None and warning.evidence is None:
        return False
    reason = warning_in_words(evidence, _held(unit, claim_id))
    event = Warned(reason=reason, rule=evidence.rule, after=after, evidence=evidence)
    take(unit, claim_id, event, evidence)
    return True


def clear(unit: "UnitOfWork", claim_id: ClaimId, verdict: Verdict) -> None:
    """What its user was told will not happen."""
    reason = why_cleared(verdict.cleared or Cleared.RULE)
    _clear(unit, claim_id, reason)


def take_idle(unit: "UnitOfWork", claim_id: ClaimId, verdict: Verdict) -> None:
    """Its time is over: do what its user was told."""
    assert verdict.evidence is not None, "whoever takes knows why"
    evidence = verdict.evidence
    reason = taking_in_words(evidence, _held(unit, claim_id))
    match evidence.action:
        case OnIdle.SHRINK:
            _clear(unit, claim_id, reason)
            least = unit.claims[claim_id].claim.bounds.minimum
            # More than that its user may ask for again.
            fewest = WorkerBounds(least, max(1, least))
            take(unit, claim_id, Rescaled(reason=reason, bounds=fewest), evidence)
        case OnIdle.HIBERNATE:
            asked = HibernateAsked(reason=reason, otherwise=_otherwise(unit, evidence))
            begin_hibernating(unit, claim_id, asked, evidence)
        case OnIdle.RELEASE:
            take(unit, claim_id, EndAsked(kind=EndKind.RECLAIMED, reason=reason), evidence)
            settle(unit, claim_id)


def _clear(unit: "UnitOfWork", claim_id: ClaimId, reason: str) -> None:
    warning = unit.claims[claim_id].claim.warning
    if warning is not None and warning.evidence is not None:
        take(unit, claim_id, WarningCleared(reason=reason))


def _otherwise(unit: "UnitOfWork", evidence: Evidence) -> Otherwise:
    """What its rule says of a claim whose results cannot be kept after all."""
    rules = (rule for rule in unit.policy.policy.idle if rule.name == evidence.rule)
    return next((rule.otherwise for rule in rules), Otherwise.LEAVE)


def _held(unit: "UnitOfWork", claim_id: ClaimId) -> Held:
    return held_of(unit, tuple(lease for lease in unit.leases_of(claim_id) if lease.counts))
