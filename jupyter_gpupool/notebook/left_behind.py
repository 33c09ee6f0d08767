"""Claims that a kernel has left behind: found at the first use of a pool, and said so once.

Called by `opening` and `asking`, on the background loop. What may live is never called left
behind: a kernel on another host is let be, unless a Jupyter server saw it die.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable, Sequence

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.client.this_host import ThisHost, started_at
from jupyter_gpupool.pool.claim import OVER
from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.using import KernelState, KernelView

from .moments import shape

_WITHIN_S = 2.0
_looked: set[str] = set()
"""The addresses of pools in which this process has looked already."""


def first_look(pool: Pool) -> "asyncio.Task[Sequence[ClaimView]] | None":
    """Begin to look for claims left behind; None if this process has done so before."""
    if pool.address.url in _looked:
        return None
    _looked.add(pool.address.url)
    return asyncio.create_task(_look(pool), name="gpupool left behind")


async def _look(pool: Pool) -> Sequence[ClaimView]:
    """Our own claims that were left behind. Knowing it is worth no error and no long wait."""
    with contextlib.suppress(PoolError, TimeoutError):
        async with asyncio.timeout(_WITHIN_S):
            status, views = await asyncio.gather(pool.client.status(), pool.client.claims())
            own = [view for view in views if view.owner == status.user]
            return left_behind(own, ThisHost.read(), started_at)
    return ()


def left_behind(
    views: Sequence[ClaimView], here: ThisHost, started: Callable[[int], int | None]
) -> Sequence[ClaimView]:
    """Those that had kernels, of which none can be alive.

    Args:
        views: Claims.
        here: This host.
        started: When the process of a number started; None if there is none.
    """
    return [
        view
        for view in views
        if view.phase not in OVER
        and view.kernels
        and all(is_gone(kernel, here, started) for kernel in view.kernels)
    ]


def is_gone(kernel: KernelView, here: ThisHost, started: Callable[[int], int | None]) -> bool:
    """Whether a kernel has certainly ended."""
    if kernel.state is KernelState.DEAD:
        return True
    if kernel.host != here.mark:
        return False
    return kernel.boot_id != here.boot_id or started(kernel.pid) != kernel.started


def left_behind_text(views: Sequence[ClaimView]) -> Sequence[str]:
    """One line a claim, with what to do; by id where a name is not enough."""
    names = Counter(view.name for view in views)
    return [_line(view, view.name if names[view.name] == 1 else view.id) for view in views]


def _line(view: ClaimView, call_it: str) -> str:
    said = json.dumps(call_it, ensure_ascii=False)
    return (
        f"Claim {view.name} ({shape(view)}) was left behind by a kernel that has ended:"
        f" attach({said}) takes it over, release({said}) gives it back."
    )
