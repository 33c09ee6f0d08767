"""Which claim is meant, by name, id or none at all: called by `asking`, `opening`, `steering`."""

import reprlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.pool.claim import OVER
from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotFound
from jupyter_gpupool.protocol.api import ClaimView

from .moments import shape
from .this_kernel import ThisKernel, this_kernel

if TYPE_CHECKING:
    from jupyter_gpupool.client.pool_client import PoolClient

_MOST_SHOWN = 8


class OfClaim(Protocol):
    """What belongs to a claim, as its cluster does."""

    @property
    def claim_id(self) -> str:
        """The claim's id; "" before it is requested."""

    @property
    def pool(self) -> Pool:
        """The pool it comes from."""


Which = str | ClaimView | OfClaim
"""How a user may call a claim: by name or id, by a view of it, or by its cluster."""


def name_of(which: Which) -> str:
    """The name or id that the manager is asked for; "" if none is said.

    Raises:
        BadRequest: If that is nothing to call a claim by: also None, which a variable may hold by
            mistake.
        Conflict: If it is a cluster whose claim has not been requested yet.
    """
    if isinstance(which, str):
        return which
    name = which.id if isinstance(which, ClaimView) else getattr(which, "claim_id", None)
    if name == "":
        raise Conflict("The claim has not been requested yet.", hint="First: await cluster")
    if not isinstance(name, str):
        raise BadRequest(
            f"{reprlib.repr(which)} is no claim.",
            field="name",
            hint="Give its name or id, its cluster, or one of gpupool.claims().",
        )
    return name


def pool_of(which: Which) -> Pool | None:
    """The pool that a cluster comes from; None for whatever does not tell."""
    return None if isinstance(which, str | ClaimView) else which.pool


async def find(client: "PoolClient", name: str, *, ended: bool = False) -> ClaimView:
    """The claim of this name or id; "" is the one this kernel uses, or the only one we hold.

    Args:
        client: Who is asked.
        name: What its user calls it.
        ended: If none of this name lives, take our own of it that ended last.

    Raises:
        PoolError: NotFound if there is none, BadRequest if several are meant.
    """
    if name:
        return await client.find_claim(name, ended=ended)
    return the_one_meant(await _own(client), this_kernel())


async def find_used(client: "PoolClient") -> ClaimView:
    """The one of our own that this kernel uses: for what cannot be undone, others do not count.

    Raises:
        PoolError: NotFound if there is none, BadRequest if there are several.
    """
    return the_one_used(await _own(client), this_kernel())


def the_one_meant(views: Sequence[ClaimView], kernel: ThisKernel) -> ClaimView:
    """The only claim of this kernel or its notebook, or else the only one there is.

    Raises:
        NotFound: If there is none.
        BadRequest: If there are several; the message lists them.
    """
    alive = _alive(views)
    ours = [view for view in alive if _is_used_by(view, kernel)]
    if len(ours or alive) > 1:
        raise _several(ours or alive)
    return (ours or alive)[0]


def the_one_used(views: Sequence[ClaimView], kernel: ThisKernel) -> ClaimView:
    """The only claim of this kernel or its notebook.

    Raises:
        NotFound: If there is none; the message lists the others.
        BadRequest: If there are several; the message lists them.
    """
    alive = _alive(views)
    ours = [view for view in alive if _is_used_by(view, kernel)]
    if not ours:
        raise NotFound(
            f"This notebook has no claim of its own; yours are: {_listed(alive)}.",
            hint="Name the one you mean.",
        )
    if len(ours) > 1:
        raise _several(ours)
    return ours[0]


async def _own(client: "PoolClient") -> Sequence[ClaimView]:
    # An admin is listed everybody's, and another user's notebook may have the same path.
    me = (await client.status()).user
    return await client.claims(owner=me)


def _alive(views: Sequence[ClaimView]) -> Sequence[ClaimView]:
    alive = [view for view in views if view.phase not in OVER]
    if not alive:
        raise NotFound("You hold no claim.", hint="Claim devices first: gpupool.claim(gpus=1)")
    return alive


def _is_used_by(view: ClaimView, kernel: ThisKernel) -> bool:
    """Whether this kernel uses a claim, or one of the same notebook did."""
    return any(
        known.id == kernel.id or (known.name != "" and known.name == kernel.name)
        for known in view.kernels
    )


def _several(views: Sequence[ClaimView]) -> BadRequest:
    return BadRequest(
        f"You hold {len(views)} claims: {_listed(views)}.",
        field="name",
        hint="Name the one you mean.",
    )


def _listed(views: Sequence[ClaimView]) -> str:
    names = Counter(view.name for view in views)
    listed = ", ".join(
        # A name that several have would not tell which.
        f"{view.name} ({shape(view)})" if names[view.name] == 1 else f"{view.id} ({view.name})"
        for view in views[:_MOST_SHOWN]
    )
    more = f" and {len(views) - _MOST_SHOWN} more" if len(views) > _MOST_SHOWN else ""
    return f"{listed}{more}"
