"""When each waiting claim will start, as far as can be told, and what would start sooner.

Asked apart from passes, for it takes longer than one; the manager keeps the answer for a while.
The median is played with what everything is expected to take, the late estimate with what nine of
ten like it stay below. A claim that is not made yet is estimated as if it were.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.rules import SurplusOrder

from .backfill import keep_for_blocked
from .booked import holding, kept_by_bookings
from .forecast import EndsAt, order_of_service, starts_of
from .granting import grant_from_free
from .ledger import Ledger, Member
from .pool_view import ClaimView, PoolView
from .remaining import should_end_s
from .rounds import books_of
from .spots import place

UNKNOWN_S = 3600.0
"""What a claim is taken to last if nothing is known of it nor of any other."""

LATE = 2.0
"""How many times what is said the late estimate takes, where nothing was learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Something else that would start now.

    Attributes:
        workers: How many.
        model: Of which model, if of another one than was asked for; "" otherwise.
    """

    workers: int
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When a claim will start.

    Attributes:
        start_p50_s: As likely sooner as later; None if it cannot be told that it ever will.
        start_p90_s: Late, in one of ten cases later still; None alike.
        alternatives: What would start now, if the claim would not.
    """

    start_p50_s: float | None
    start_p90_s: float | None
    alternatives: tuple[Alternative, ...] = ()


def estimates(view: PoolView) -> dict[ClaimId, Estimate]:
    """Estimate the start of every claim that waits for its minimum.

    Args:
        view: As a pass sees it, with what is expected entered; see `expected.with_expected`.
    """
    return _estimated(view, books_of(view))


def estimate_claim(view: PoolView, claim: ClaimView) -> Estimate:
    """Estimate the start of a claim that is not made yet.

    Args:
        view: Without it; its tree has a leaf for the claim's user.
        claim: What would be asked, `since_s` being now.
    """
    asked = replace(view, claims=(*view.claims, claim))
    estimate = _estimated(asked, books_of(asked))[claim.id]
    if estimate.start_p50_s == view.now_s:
        return estimate
    return replace(estimate, alternatives=tuple(_alternatives(view, claim)))


def told(estimate: Estimate, asked: int, now_s: float, clock: Callable[[float], str]) -> str:
    """Say an estimate in one line: "2 now, 4 at about 14:20; now if you take L40S".

    Args:
        estimate: What to say.
        asked: Workers asked for.
        now_s: The present.
        clock: Writes a moment as people read it.
    """
    fewer = [f"{a.workers} now" for a in estimate.alternatives if not a.model]
    if estimate.start_p50_s is None:
        when = "no start can be told"
    elif estimate.start_p50_s <= now_s:
        when = "now"
    else:
        when = f"{asked} at about {clock(estimate.start_p50_s)}"
    models = [a.model for a in estimate.alternatives if a.model]
    other = f"now if you take {' or '.join(models)}" if models else ""
    return "; ".join(part for part in (", ".join([*fewer, when]), other) if part)


def _estimated(view: PoolView, ledger: Ledger) -> dict[ClaimId, Estimate]:
    typical_s = _typical_s(view)
    bounds, order = _reserved(ledger), order_of_service(ledger)
    promised = [m.view.id for m in ledger.members.values() if m.promised]
    median_starts = _played(ledger, order, _ends_at(typical_s, late=False))
    late_starts = _played(Ledger(view), order, _ends_at(typical_s, late=True))
    found: dict[ClaimId, Estimate] = {}
    for claim_id in (*promised, *order):
        p50_s = _earlier(median_starts.get(claim_id), bounds.get(claim_id))
        p90_s = _earlier(late_starts.get(claim_id), bounds.get(claim_id))
        # Things that take longer may happen to let one start sooner: late is never before.
        late_s = None if p50_s is None or p90_s is None else max(p50_s, p90_s)
        found[claim_id] = Estimate(start_p50_s=p50_s, start_p90_s=late_s)
    return found


def _played(ledger: Ledger, order: Sequence[ClaimId], ends_at: EndsAt) -> dict[ClaimId, float]:
    booked = tuple(holding(ledger, kept_by_bookings(ledger))) if ledger.bookings else ()
    return starts_of(ledger, order, ends_at, booked)


def _reserved(ledger: Ledger) -> dict[ClaimId, float]:
    """By when the pass's own reservations let blocked claims start, in the order that keeps any."""
    if ledger.rules.surplus_order is not SurplusOrder.FAIR_SHARE:
        return {}
    booked = kept_by_bookings(ledger)
    kept = keep_for_blocked(ledger, [m for m in ledger.members.values() if m.needs], booked)
    kept.close()
    return {r.holder.view.id: r.gap.start_s for r in kept.reservations if r.holder is not None}


def _earlier(one: float | None, other: float | None) -> float | None:
    known = [moment_s for moment_s in (one, other) if moment_s is not None]
    return min(known) if known else None


def _typical_s(view: PoolView) -> float:
    known = [claim.expected_s for claim in view.claims if claim.expected_s is not None]
    return median(known) if known else UNKNOWN_S


def _ends_at(typical_s: float, *, late: bool) -> EndsAt:
    def ends_at(claim: ClaimView, starts_s: float) -> float:
        took_s = typical_s if claim.expected_s is None else claim.expected_s
        if late:
            took_s = claim.expected_at_most_s or LATE * took_s
        return should_end_s(claim, starts_s, took_s)

    return ends_at


def _alternatives(view: PoolView, claim: ClaimView) -> Iterator[Alternative]:
    """What would start now beside all who are before it in line: fewer, or of another model."""
    ledger = books_of(view)
    waiting = [m for m in ledger.members.values() if m.needs and not m.promised]
    grant_from_free(ledger, waiting, kept_by_bookings(ledger))
    for workers in range(claim.minimum - 1, 0, -1):
        if _fits_now(ledger, replace(claim, minimum=workers, maximum=workers)):
            yield Alternative(workers=workers)
            break
    for model in _other_models(view, claim):
        other = replace(claim, worker=claim.worker._replace(model=model.lower()))
        if _fits_now(ledger, other):
            yield Alternative(workers=claim.minimum, model=model)


def _fits_now(ledger: Ledger, claim: ClaimView) -> bool:
    member: Member = ledger.add(claim)
    del ledger.members[claim.id]
    fits_limits = ledger.over_limit(member, member.needs) is None
    return fits_limits and bool(place(ledger, member, member.needs, member.needs))


def _other_models(view: PoolView, claim: ClaimView) -> list[str]:
    """Models of the pool that the claim's own constraint shuts out, in order of name."""
    if not claim.worker.model:
        return []
    models = {device.model for host in view.hosts for device in host.devices}
    return sorted(model for model in models if claim.worker.model not in model.lower())
