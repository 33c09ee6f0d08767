"""What would become of a claim that is not made: decided on a copy, by the pass itself.

Called by the route of estimates. `imagine` checks the claim as a real one would be, on a unit of
work that is thrown away; `foretell` is pure and slow, and runs in a thread.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.scheduling.decisions import Constraint, Decisions, Waiting
from jupyter_gpupool.scheduling.estimates import Alternative, estimate_claim
from jupyter_gpupool.scheduling.expected import Expected
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.rounds import plan

from .claims import RequestClaim, request_claim
from .forecasts import FREED_WITHIN_S, Start, can_tell, rests_on_learning, start_of
from .learning import Learning
from .planning import steps_of
from .pool_view import build
from .unit import UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Imagined:
    """A claim that is not made, among those that are.

    Attributes:
        claim: As a pass sees it.
        queue: In which its user would stand.
        view: The pool without it.
        decide: A pass over the pool with it.
        grace_s: How long whoever has to give way for it keeps what they hold.
    """

    claim: ClaimView
    queue: str
    view: PoolView
    decide: Callable[[], Decisions]
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """What would become of it.

    Attributes:
        starts_now: It would be granted its minimum at once.
        wait: Why it would wait, else None.
        start: When it is thought to start; None if that cannot be told.
    """

    starts_now: bool
    wait: Waiting | None
    start: Start | None
    expected: Expected
    alternatives: tuple[Alternative, ...] = ()


def imagine(unit: UnitOfWork, command: RequestClaim) -> Imagined:
    """Ask for the claim on a unit that nobody keeps.

    Raises:
        PoolError: As `request_claim`.
    """
    claim_id = request_claim(unit, replace(command, key=None))
    moment = unit.moment
    now_s = unit.now.timestamp()
    with_it = build(unit, now_s, moment.monotonic_s, moment.sight)
    [claim] = [each for each in with_it.claims if each.id == claim_id]
    others = tuple(each for each in with_it.claims if each.id != claim_id)
    return Imagined(
        claim=claim,
        queue=unit.claims[claim_id].claim.request.queue,
        view=replace(with_it, claims=others),
        decide=partial(plan, with_it, steps_of(unit)),
        grace_s=unit.policy.policy.grace_s,
    )


def foretell(imagined: Imagined, learning: Learning) -> Foretold:
    """Let a pass decide, and where that is not enough play the pool forward."""
    decided, expected = imagined.decide(), learning.expect(imagined.claim)
    claim_id, now_s = imagined.claim.id, imagined.view.now_s
    now = datetime.fromtimestamp(now_s, UTC)
    wait = next((wait for wait in decided.waits if wait.claim_id == claim_id), None)
    if _is_granted(decided, claim_id):
        return Foretold(starts_now=True, wait=None, start=Start(at=now, by=now), expected=expected)
    if wait is not None and wait.constraint is Constraint.FREEING:
        at, freed = now + timedelta(seconds=imagined.grace_s), timedelta(seconds=FREED_WITHIN_S)
        start = Start(at=at, by=at + freed)
        return Foretold(starts_now=False, wait=wait, start=start, expected=expected)
    return _foreseen(imagined, learning, wait, expected)


def _is_granted(decided: Decisions, claim_id: ClaimId) -> bool:
    return any(grant.claim_id == claim_id for grant in decided.grants)


def _foreseen(
    imagined: Imagined, learning: Learning, wait: Waiting | None, expected: Expected
) -> Foretold:
    informed = learning.informed(imagined.view)
    asked = replace(
        imagined.claim, expected_s=expected.median_s, expected_at_most_s=expected.at_most_s
    )
    estimate = estimate_claim(informed, asked)
    start = start_of(estimate, is_learned=rests_on_learning(informed))
    is_never = wait is not None and wait.never
    return Foretold(
        starts_now=False,
        wait=wait,
        start=start if can_tell(informed) and not is_never else None,
        expected=expected,
        alternatives=estimate.alternatives,
    )
