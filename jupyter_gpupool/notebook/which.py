"""Which claim is meant, by name, id or none at all: called by `asking` and `opening`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest, NotFound
from jupyter_gpupool.protocol.api import ClaimView

from .moments import shape
from .this_kernel import ThisKernel, this_kernel

if TYPE_CHECKING:
    from jupyter_gpupool.client.pool_client import PoolClient

_OVER = (Phase.ENDING, Phase.ENDED)
_MOST_SHOWN = 8


async def find(client: "PoolClient", name: str) -> ClaimView:
    """The claim of this name or id; "" is the one this kernel uses, or the only one we hold.

    Raises:
        PoolError: NotFound if there is none, BadRequest if several are meant.
    """
    if name:
        return await client.find_claim(name)
    me = (await client.status()).user
    return the_one_meant(await client.claims(owner=me), this_kernel())


def the_one_meant(views: Sequence[ClaimView], kernel: ThisKernel) -> ClaimView:
    """The only claim of this kernel or its notebook, or else the only one there is.

    Raises:
        NotFound: If there is none.
        BadRequest: If there are several; the message lists them.
    """
    alive = [view for view in views if view.phase not in _OVER]
    ours = [view for view in alive if is_used_by(view, kernel)]
    if not alive:
        raise NotFound("You hold no claim.", hint="Claim devices first: gpupool.claim(gpus=1)")
    if len(ours or alive) > 1:
        raise _several(ours or alive)
    return (ours or alive)[0]


def is_used_by(view: ClaimView, kernel: ThisKernel) -> bool:
    """Whether this kernel uses a claim, or one of the same notebook did."""
    return any(
        known.id == kernel.id or (known.name != "" and known.name == kernel.name)
        for known in view.kernels
    )


def _several(views: Sequence[ClaimView]) -> BadRequest:
    listed = ", ".join(f"{view.name} ({shape(view)})" for view in views[:_MOST_SHOWN])
    more = f" and {len(views) - _MOST_SHOWN} more" if len(views) > _MOST_SHOWN else ""
    return BadRequest(
        f"You hold {len(views)} claims: {listed}{more}.",
        field="name",
        hint="Name the one you mean.",
    )
