"""What is said of starts to come: of a claim that waits, and of one that is not made yet.

Route: POST /api/v1/estimates, ClaimBody → EstimateView, user. It makes no claim. All times are
estimates of the moment they were asked for.
"""

from datetime import datetime

from jupyter_gpupool.pool.ids import ClaimId

from .bodies import View


class StartView(View):
    """When a claim is thought to start; base of whatever shows it.

    Attributes:
        starts_at: As likely sooner as later; None if nobody can tell.
        starts_by: Late: nine of ten such starts come sooner.
        starts_learned: It rests on how long past claims took, where users say nothing.
    """

    starts_at: datetime | None = None
    starts_by: datetime | None = None
    starts_learned: bool = False


class ComingView(StartView):
    """A claim of the caller's that waits, in one look at the pool."""

    claim: ClaimId
    name: str
    place: int


class AlternativeView(View):
    """Something else that would start now.

    Attributes:
        workers: How many.
        model: Of which model, if of another one than was asked for; "" otherwise.
    """

    workers: int
    model: str = ""


class EstimateView(StartView):
    """When a claim would start if it were asked for now.

    Attributes:
        workers: How many it would start with.
        queue: Where it would stand.
        now: It would start at once.
        place: Its place in line, from 1; None if it would start at once.
        constraint: What binds it, in one word; "" if nothing does.
        reason: The same in a sentence.
        never: It cannot start as the pool is.
        misses_deadline: It is not thought to be done by the deadline it names.
        expected_s: How long it would hold its devices, as said or learned; None if not known.
        expected_from: Where that comes from, in words.
        alternatives: What would start now, if it would not.
    """

    workers: int
    queue: str
    now: bool
    place: int | None = None
    constraint: str = ""
    reason: str = ""
    never: bool = False
    misses_deadline: bool = False
    expected_s: float | None = None
    expected_from: str = ""
    alternatives: tuple[AlternativeView, ...] = ()
