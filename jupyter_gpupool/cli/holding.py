"""Holds a claim for as long as the command runs; Ctrl-C gives it back.

Called by `claims.claim`. Needs no Dask: whoever computes attaches to the claim.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import click

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.following import Following, Listener
from jupyter_gpupool.notebook.giving_back import give_back
from jupyter_gpupool.notebook.opening import Opening, lost
from jupyter_gpupool.notebook.terms import body_of
from jupyter_gpupool.notebook.voice import Voice
from jupyter_gpupool.pool.errors import ClaimLost
from jupyter_gpupool.pool.units import parse_duration
from jupyter_gpupool.protocol.api import ClaimView


def request(pool: Pool, gpus: tuple[int, int], terms: Mapping[str, Any]) -> ClaimView:
    """Ask for a claim.

    Raises:
        PoolError: If the terms make no sense, or the pool says no.
    """
    given: Any = {name: value for name, value in terms.items() if value not in (None, "")}
    body = body_of(gpus, given)
    return pool.background.run(lambda _say: Opening(pool, body=body).request())


def hold(
    pool: Pool, view: ClaimView, *, timeout: str | None, runs: Callable[[ClaimView], None]
) -> None:
    """Wait until the claim runs, say so, and keep it until Ctrl-C.

    Raises:
        ClaimLost: When it ends by itself.
    """
    limit_s = None if timeout is None else parse_duration(timeout, field="timeout").total_seconds()
    opening, say_waiting = Opening(pool, view=view), _to_stderr
    try:
        opened = pool.background.run(lambda say: opening.wait(say, limit_s), say_waiting)
        runs(opened.view)
        reason = pool.background.run(lambda _say: _end_of(pool, opened.view))
    except ClaimLost:
        raise
    except BaseException:
        released = asyncio.run(give_back(pool, view))
        _to_stderr(f"Claim {released.name} is {released.phase}.")
        raise
    raise lost(view.name, reason)


async def _end_of(pool: Pool, view: ClaimView) -> str:
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    listener = Listener(changed=Voice().warn, ended=ended.set_result)
    following = Following(pool, view, listener)
    following.start()
    try:
        return await ended
    finally:
        following.stop()


def _to_stderr(text: str) -> None:
    click.echo(text, err=True)
