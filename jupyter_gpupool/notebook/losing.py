"""A claim that its pool may end by itself, and what is under way with its scheduler then.

Used by `cluster`, `clients` and `greeting`. A killed scheduler shows as connections that break or
cannot be made, which Dask tries for half a minute; its claim's end is known within a moment.
"""

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Coroutine
from typing import Any, TypeVar

from jupyter_gpupool.pool.errors import ClaimLost, Unavailable

_REASON_WITHIN_S = 5.0
"""How long after a connection broke the pool may take to say why."""
_T = TypeVar("_T")


class EndsByItself:
    """A cluster that its pool may end.

    Attributes:
        is_over: Set when it has ended; whoever sets it ends the clients as well.
        lost: Why it has ended; None until then.
    """

    is_over: asyncio.Event
    lost: ClaimLost | None

    @abstractmethod
    async def goes_on(self) -> bool:
        """Whether the pool knows of no end of it."""


def unreachable(why: object) -> Unavailable:
    """The error for a scheduler that does not answer, of a claim that has not ended."""
    return Unavailable(
        f"The claim runs, but its scheduler cannot be reached: {why}.",
        hint="Check that this machine can reach its host, then try again.",
    )


async def lost_soon(cluster: EndsByItself) -> ClaimLost | None:
    """Why it has ended, if that is why a connection broke."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REASON_WITHIN_S):
            await cluster.is_over.wait()
    return cluster.lost


async def unless_lost(cluster: EndsByItself, reach: Coroutine[Any, Any, _T]) -> _T:
    """Reach a claim's scheduler, and give up once the claim has ended.

    Raises:
        ClaimLost: If it has, or does so soon after it could not be reached.
        Unavailable: If it could not be reached for another reason.
    """
    reaching = asyncio.ensure_future(reach)
    over = asyncio.ensure_future(cluster.is_over.wait())
    try:
        await asyncio.wait((reaching, over), return_when=asyncio.FIRST_COMPLETED)
        if cluster.lost is not None:
            raise cluster.lost
        return await reaching
    except OSError as error:
        raise (await lost_soon(cluster) or unreachable(error)) from None
    finally:
        over.cancel()
        reaching.cancel()
        await asyncio.wait((reaching, over))
