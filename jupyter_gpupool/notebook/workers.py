"""How many workers a claim has and wants, and what may be asked for: pure, called by `cluster`."""

from collections.abc import Collection
from math import inf

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.request import MAX_WORKERS, WorkerBounds
from jupyter_gpupool.pool.units import as_count
from jupyter_gpupool.protocol.api import ClaimView, LeaseView

_COUNT = (LeasePhase.GRANTED, LeasePhase.RUNNING)


def bounds_of(view: ClaimView | None) -> WorkerBounds:
    """The bounds of a claim; none at all before it is requested."""
    return WorkerBounds(0, 0) if view is None else WorkerBounds(view.workers.min, view.workers.max)


def devices_text(lease: LeaseView, model: str) -> str:
    """What a worker has: "A100", "0.5 of A100" or "4×A100"."""
    if lease.share < 1:
        return f"{lease.share:g} of {model}"
    return model if len(lease.devices) <= 1 else f"{len(lease.devices)}×{model}"


def granted(view: ClaimView | None) -> set[str | int]:
    """Names of the workers that a claim was granted: the ids of their leases."""
    leases = () if view is None else view.leases
    return {lease.id for lease in leases if lease.phase in _COUNT}


def planned(view: ClaimView | None) -> set[str | int]:
    """The same with a number for each worker that is wanted and not granted yet."""
    names = granted(view)
    return names | set(range(bounds_of(view).maximum - len(names)))


def scaled(view: ClaimView | None, count: int) -> WorkerBounds:
    """Bounds for "this many from now on".

    Raises:
        BadRequest: If it is no number from zero on.
    """
    wanted = _counted(count)
    return WorkerBounds(min(wanted, bounds_of(view).minimum), wanted)


def adapted(
    view: ClaimView | None, minimum: int | None, maximum: float | None, others: Collection[str]
) -> WorkerBounds:
    """Bounds for "as the manager sees fit, between these".

    Args:
        view: The claim.
        minimum: The least; None is none.
        maximum: The most; None is what it is now, infinity no bound, as with Dask's own clusters.
        others: Other options given.

    Raises:
        BadRequest: If they make no sense, or more than bounds is asked for.
    """
    if others:
        raise BadRequest(
            f"The pool's manager adapts by its policy and takes no {', '.join(others)}.",
            hint="Give minimum and maximum only.",
        )
    least = 0 if minimum is None else _counted(minimum)
    if maximum is None:
        return WorkerBounds(least, bounds_of(view).maximum)
    return WorkerBounds(least, MAX_WORKERS if maximum == inf else _counted(maximum))


def _counted(count: object) -> int:
    whole = as_count(count)
    if whole is None or whole < 0:
        raise BadRequest(
            f"A claim cannot have {count!r} workers.", field="workers", hint="Ask for 0 or more."
        )
    return whole
