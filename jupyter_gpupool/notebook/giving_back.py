"""Gives a claim back, in bounded time, also when its Python is ending.

Called by `cluster` and `opening`, and at exit through `weakref.finalize`. What a manager that does
not answer has granted is given back in the background once it does.
"""

import asyncio
import atexit
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.client.this_host import ThisHost, started_at
from jupyter_gpupool.pool.errors import PoolError, Unavailable
from jupyter_gpupool.protocol.api import ClaimView

from .left_behind import is_gone
from .this_kernel import is_restarting, this_kernel

_RELEASE_WITHIN_S = 5.0
_AT_EXIT_WITHIN_S = 2.0
_GO_ON_FOR_S = 60.0
_TRY_AGAIN_AFTER_S = 1.0
_unfinished: set[asyncio.Task[ClaimView | None]] = set()
"""Kept here so that they live although nobody waits for them."""


async def give_back(pool: Pool, view: ClaimView) -> ClaimView:
    """Release a claim and return it as it then is: ending, or ended.

    Raises:
        Unavailable: If the manager cannot, or does not answer in time: the claim may still run.
    """
    try:
        return await pool.background.bridge(lambda _say: _release(pool, view, _RELEASE_WITHIN_S))
    except (Unavailable, TimeoutError) as error:
        raise _may_still_run(view, error) from error


def give_back_now(pool: Pool, view: ClaimView) -> ClaimView:
    """The same for a caller without a loop of its own."""
    try:
        return pool.background.run(lambda _say: _release(pool, view, _RELEASE_WITHIN_S))
    except (Unavailable, TimeoutError) as error:
        raise _may_still_run(view, error) from error


def _may_still_run(view: ClaimView, error: Exception) -> Unavailable:
    return Unavailable(
        f"{_said(error)} So claim {view.name} may still run.",
        hint=f"Later: jupyter gpupool release {view.id}",
    )


def give_back_at_exit(
    pool: Pool, view: ClaimView, pid: int, fall_silent: Callable[[], None]
) -> None:
    """The same for a cluster that nobody closed: nobody is left to raise to.

    Its end is then our own doing and no loss to be told of, so `fall_silent` comes first.

    A kernel that restarts keeps its claims, for it will attach to them; so do other kernels that
    use them, and a forked child has none.
    """
    if os.getpid() != pid or is_restarting():
        return
    fall_silent()
    try:
        _run_or_begin(pool, lambda: _release_or_tell(pool, view))
    except RuntimeError as error:
        # Python is so far gone that not even a thread can be had.
        _tell_kept(view, error)


def _run_or_begin(pool: Pool, release: Callable[[], Coroutine[Any, Any, ClaimView | None]]) -> None:
    if _is_running(pool.background.loop):
        # The garbage collector may call from the very loop that would be waited for.
        _keep(asyncio.create_task(release()))
    else:
        pool.background.run(lambda _say: release())


async def _release_or_tell(pool: Pool, view: ClaimView) -> ClaimView | None:
    # Told here: on the loop that would be waited for, nobody takes an error.
    try:
        return await _release_unless_shared(pool, view)
    except (PoolError, TimeoutError) as error:
        _tell_kept(view, error)
        return None


def _tell_kept(view: ClaimView, error: Exception) -> None:
    sys.stderr.write(f"Claim {view.name} could not be given back: {_said(error)}\n")


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


async def _release_unless_shared(pool: Pool, view: ClaimView) -> ClaimView | None:
    async with asyncio.timeout(_AT_EXIT_WITHIN_S):
        here, us = ThisHost.read(), this_kernel().id
        kernels = (await pool.client.claim(view.id, patience_s=_AT_EXIT_WITHIN_S / 2)).kernels
        if any(each.id != us and not is_gone(each, here, started_at) for each in kernels):
            return None
        return await pool.client.release(view.id, patience_s=_AT_EXIT_WITHIN_S / 2)


def _said(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "The manager does not answer."
    return error.message if isinstance(error, PoolError) else str(error)


async def _release(pool: Pool, view: ClaimView, within_s: float) -> ClaimView:
    async with asyncio.timeout(within_s):
        return await pool.client.release(view.id, patience_s=within_s / 2)


def release_once_known(
    pool: Pool, ask: Callable[[], Awaitable[ClaimView]], reason: str
) -> "asyncio.Task[ClaimView | None]":
    """Release a claim whose id only an answer tells that has not come yet.

    On the background loop; goes on for a minute whether or not the task is waited for.

    Args:
        pool: Where it was asked for.
        ask: Asks again for the same claim, so that it makes no second one.
        reason: Kept with the claim.
    """
    task = asyncio.create_task(_release_known(pool, ask, reason), name="gpupool giving back")
    if not _unfinished:
        atexit.unregister(_finish)
        atexit.register(_finish, pool)
    _keep(task)
    return task


def _keep(task: "asyncio.Task[ClaimView | None]") -> None:
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)


async def _release_known(
    pool: Pool, ask: Callable[[], Awaitable[ClaimView]], reason: str
) -> ClaimView | None:
    with contextlib.suppress(PoolError, TimeoutError):
        async with asyncio.timeout(_GO_ON_FOR_S):
            view = await _until_answered(ask)
            return await _until_answered(lambda: pool.client.release(view.id, reason))
    return None


async def _until_answered(ask: Callable[[], Awaitable[ClaimView]]) -> ClaimView:
    while True:
        with contextlib.suppress(Unavailable):
            return await ask()
        await asyncio.sleep(_TRY_AGAIN_AFTER_S)


def _finish(pool: Pool) -> None:
    """A script often ends right after such an error: a last moment to be answered."""
    if not _unfinished:
        return

    async def finish() -> None:
        await asyncio.wait(tuple(_unfinished), timeout=_AT_EXIT_WITHIN_S)

    with contextlib.suppress(RuntimeError):
        pool.background.run(lambda _say: finish())


os.register_at_fork(after_in_child=_unfinished.clear)
