"""`queues`: how the queues stand, all of them for an admin, their own for a user."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.pool.units import format_bytes

from .asking import ask
from .output import json_option, show_json, show_table, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.table import Table

    from jupyter_gpupool.protocol.policy_views import AmountsView, QueueView, YoursView

NO_QUEUE = "There is no queue that you may claim in."


@click.command()
@json_option
def queues(*, as_json: bool) -> None:
    """List the queues you may claim in, and how each stands; for admins all of them.

    IN is the queue that it is part of.

    SHARE is what a queue may hold now before others may take it back: its part of the pool by what
    everybody holds and wants, and never less than its guarantee. USED still counts against it when
    devices are divided, and fades with time. WAITING says how many claims would fit if others
    moved, which they do if the policy says moves = "done". YOURS is what you hold of it, and what
    of your own limits is used.
    """
    view = ask(lambda client: client.policy.current())
    if as_json:
        show_json(view.queues)
    else:
        show_table(queues_table(view.queues), NO_QUEUE)


def queues_table(views: "Sequence[QueueView]") -> "Table":
    """One row a queue; GPUs unless another unit stands there."""
    names = "QUEUE", "IN", "GUARANTEE", "LIMIT", "WEIGHT", "SHARE", "HELD", "WAITING", "USED"
    made = table(*names, "YOURS")
    for view in views:
        made.add_row(
            view.name,
            view.parent or "",
            _amounts(view.guarantee),
            _amounts(view.limit),
            f"{view.weight:g}",
            f"{view.share:g}",
            f"{view.held:g}",
            _waiting(view),
            f"{view.used_gpu_hours:.1f} h",
            ", ".join(_yours(view.yours)),
        )
    return made


def _amounts(view: "AmountsView") -> str:
    return ", ".join(_said(view)) or "-"


def _said(view: "AmountsView") -> "Iterator[str]":
    if view.gpus is not None:
        yield f"{view.gpus:g}"
    yield from _models(view.models.items())
    if view.cpus is not None:
        yield f"{view.cpus:g} cores"
    if view.memory_bytes is not None:
        yield format_bytes(view.memory_bytes)


def _models(models: "Iterable[tuple[str, float]]") -> "Iterator[str]":
    for model, count in models:
        yield f"{count:g} × {model.upper()}"


def _yours(view: "YoursView") -> "Iterator[str]":
    most = "" if view.most_held is None else f" of {view.most_held:g}"
    yield f"{view.held:g}{most}"
    if view.most_claims is not None:
        yield f"{view.claims} of {view.most_claims} claims"
    if view.most_gpu_hours is not None:
        yield f"{view.gpu_hours:.1f} of {view.most_gpu_hours:g} h"


def _waiting(view: "QueueView") -> str:
    if not view.waiting_claims:
        return "0"
    claims = "claim" if view.waiting_claims == 1 else "claims"
    moves = f", {view.fit_if_moved} would fit if others moved" if view.fit_if_moved else ""
    return f"{view.waiting:g} ({view.waiting_claims} {claims}{moves})"
