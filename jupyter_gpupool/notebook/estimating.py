"""`gpupool.estimate(4)`: when a claim would start, and what would start sooner. Needs no Dask.

Reached through the package's lazy attributes; the command line and `%gpupool` show the same.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

from jupyter_gpupool.client.pools import Pool, given_or_current
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.estimates import EstimateView

from . import markup
from .moments import here_and_now, ordinal, starts_text
from .terms import ClaimTerms, Gpus, body_of
from .used_from import used_from

if TYPE_CHECKING:
    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.protocol.api import ClaimBody


class Estimate(EstimateView):
    """When a claim would start that is not made."""

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        head, *rest = self._lines()
        lines = "".join(markup.element("li", markup.text(line)) for line in rest)
        shown = markup.element("div", markup.text(head, bold=True))
        return markup.block(shown, *([markup.element("ul", lines)] if lines else []))

    def _lines(self) -> Sequence[str]:
        return (headline(self), *_notes(self))


def estimate(gpus: Gpus = 2, *, pool: Pool | None = None, **terms: Unpack[ClaimTerms]) -> Estimate:
    """When a claim like this would start; nothing is claimed.

    Args:
        gpus: As of `claim`.
        pool: Another pool than the one the environment names.
        terms: As of `claim`.

    Raises:
        PoolError: BadRequest for terms that make no sense, Unavailable if there is no pool to ask.
    """
    body, pool = body_of(gpus, terms, used_from()), given_or_current(pool)
    return pool.background.run(lambda _say: estimate_of(pool.client, body))


async def estimate_of(client: "PoolClient", body: "ClaimBody") -> Estimate:
    """When this claim would start."""
    # Checked when it was read: what a newer manager added is kept out already.
    return Estimate.model_construct(**dict(await client.estimate(body)))


def headline(view: EstimateView) -> str:
    """In one line: "2 now, 4 about 14:20; now if you take L40S"."""
    if view.now:
        return f"{view.workers} now"
    fewer = [f"{each.workers} now" for each in view.alternatives if not each.model]
    starts = starts_text(view, here_and_now()).removeprefix("starts ")
    when = f"{view.workers} {starts}" if starts else f"{view.workers} {_unknown(view)}"
    models = [each.model for each in view.alternatives if each.model]
    other = [f"now if you take {' or '.join(models)}"] if models else []
    return "; ".join((", ".join((*fewer, when)), *other))


def _unknown(view: EstimateView) -> str:
    return "never, as the pool is" if view.never else "later, nobody can tell when"


def _notes(view: EstimateView) -> Iterator[str]:
    if view.place is not None:
        yield f"It would be {ordinal(view.place)} in line of {view.queue}. {view.reason}".rstrip()
    elif view.reason:
        yield view.reason
    if view.expected_s is not None and "learned" in view.expected_from:
        took = format_duration(view.expected_s)
        yield f"It is thought to take {took}, {view.expected_from}."
    if view.misses_deadline:
        yield "It is not thought to be done by its deadline."
