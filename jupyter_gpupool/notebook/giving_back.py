"""Gives a claim back, in bounded time, also when its Python is ending.

Called by `cluster`, and at exit through `weakref.finalize`.
"""

import asyncio
import sys

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.pool.errors import PoolError, Unavailable
from jupyter_gpupool.protocol.api import ClaimView

_RELEASE_WITHIN_S = 5.0
_AT_EXIT_WITHIN_S = 2.0


async def give_back(pool: Pool, view: ClaimView) -> ClaimView:
    """Release a claim and return it as it then is: ending, or ended.

    Raises:
        Unavailable: If the manager does not say so in time: then the claim may still run.
    """
    try:
        return await pool.background.bridge(lambda _say: _release(pool, view, _RELEASE_WITHIN_S))
    except (Unavailable, TimeoutError) as error:
        raise Unavailable(
            f"The manager does not answer, so claim {view.name} may still run.",
            hint=f"Once it does: jupyter gpupool release {view.id}",
        ) from error


def give_back_at_exit(pool: Pool, view: ClaimView) -> None:
    """The same for a cluster that nobody closed: nobody is left to raise to."""
    try:
        pool.background.run(lambda _say: _release(pool, view, _AT_EXIT_WITHIN_S))
    except (PoolError, TimeoutError, RuntimeError) as error:
        # RuntimeError: Python is so far gone that not even a thread can be had.
        sys.stderr.write(f"Claim {view.name} could not be given back: {error}\n")


async def _release(pool: Pool, view: ClaimView, within_s: float) -> ClaimView:
    async with asyncio.timeout(within_s):
        return await pool.client.release(view.id, patience_s=within_s / 2)
