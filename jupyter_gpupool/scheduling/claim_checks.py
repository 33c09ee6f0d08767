"""What a claim must satisfy before a pass may see it, each refused in one sentence.

For whoever builds a `ClaimView` from what people or files say: the simulator, tools, tests. The
manager's requests are checked when they are made. A pass itself checks nothing: it runs over
thousands of claims. What is sound but too large for the pool is no matter of this: it waits, and is
told with the numbers that it can never start.
"""

from collections.abc import Iterator
from math import isfinite

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import format_duration, plural

from .amounts import WHOLE_DEVICE
from .pool_view import ClaimView
from .queues import QueueTree
from .shape import WorkerShape


def check_claim(claim: ClaimView, tree: QueueTree, now_s: float) -> None:
    """Refuse a claim that makes no sense.

    Raises:
        BadRequest: Its queue is unknown or has others below it, a count or an amount is none, its
            bounds are the wrong way round, a duration is not above 0, its deadline is over.
    """
    for field, sentence in _faults(claim, tree, now_s):
        raise BadRequest(f'Claim "{claim.id}" {sentence}.', field=field)


def _faults(claim: ClaimView, tree: QueueTree, now_s: float) -> Iterator[tuple[str, str]]:
    if claim.queue not in tree.queues:
        yield "queue", f'asks for queue "{claim.queue}", which is unknown'
    elif below := tree.children[claim.queue]:
        yield "queue", f'asks for queue "{claim.queue}", but claims belong to "{below[0]}" below it'
    if claim.minimum < 1:
        yield "workers", f"starts with {claim.minimum} workers; it must be 1 or more"
    if claim.minimum > claim.maximum:
        bounds = f"{plural(claim.minimum, 'worker')} but takes no more than {claim.maximum}"
        yield "workers", f"starts with {bounds}"
    yield from _faults_of_shape(claim.worker)
    yield from _faults_of_times(claim, now_s)


def _faults_of_shape(worker: WorkerShape) -> Iterator[tuple[str, str]]:
    if worker.devices < 0:
        yield "gpus_per_worker", f"asks for {worker.devices} devices a worker; it must be 0 or more"
    if not 0 <= worker.share < WHOLE_DEVICE:
        part = f"{worker.share / WHOLE_DEVICE:g} of a device"
        yield "gpus", f"asks for {part}; a part is more than 0 and less than 1"
    elif worker.share and worker.devices:
        whole = plural(worker.devices, "whole device")
        yield "gpus", f"asks for {whole} and a part of one; it can have either"
    for field in ("cpu", "memory_bytes", "device_memory_bytes"):
        amount: int = getattr(worker, field)
        if amount < 0:
            yield field, f"asks for a negative {field} of {amount}"


def _faults_of_times(claim: ClaimView, now_s: float) -> Iterator[tuple[str, str]]:
    for field in ("expected_s", "time_limit_s"):
        seconds: float | None = getattr(claim, field)
        if seconds is not None and not (isfinite(seconds) and seconds > 0):
            yield field, f"has {field.removesuffix('_s')} {seconds:g} s; it must be above 0"
    # Whoever runs already may overrun its deadline: it was told.
    if claim.deadline_s is not None and not claim.held and claim.deadline_s <= now_s:
        yield "deadline", f"has a deadline {format_duration(now_s - claim.deadline_s)} ago"
