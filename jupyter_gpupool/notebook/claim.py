"""`gpupool.claim(…)` and its neighbours: what a notebook user calls.

Reached through the package's lazy attributes. Finds the pool, turns words into terms, and hands
over a Dask cluster.
"""

from collections.abc import Sequence
from typing import Unpack

from jupyter_gpupool.client.pools import Pool, current_pool
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import parse_duration
from jupyter_gpupool.protocol.api import ClaimView, StatusView

from .cluster import ClaimCluster
from .opening import Opening
from .terms import ClaimTerms, Duration, Gpus, body_of


def claim(
    gpus: Gpus = 2,
    *,
    wait: bool = True,
    timeout: Duration | None = None,
    asynchronous: bool = False,
    quiet: bool = False,
    pool: Pool | None = None,
    **terms: Unpack[ClaimTerms],
) -> ClaimCluster:
    """Claim devices and get a Dask cluster with one worker on each.

    While it waits it prints its place in line and the reason; Ctrl-C gives the claim up.

    Args:
        gpus: How many, or (least to start with, most to grow to).
        wait: False returns at once; the first use of the cluster then waits.
        timeout: Give up after this time, such as "10 min"; None waits for ever.
        asynchronous: For use with `await` or `async with` on a running loop.
        quiet: Print nothing.
        pool: Another pool than the one the environment names.
        terms: name, model, gpu_memory, memory, nthreads, time_limit, environment, env, priority,
            and dask-cuda's options for each worker: see `ClaimTerms`.

    Raises:
        PoolError: BadRequest for terms that make no sense, StillWaiting after `timeout`, ClaimLost
            if it ends before it runs, Unavailable if there is no pool to ask.
    """
    body = body_of(gpus, terms)
    if asynchronous and not wait:
        raise BadRequest(
            "wait=False is for blocking use.",
            field="wait",
            hint="An asynchronous claim waits when it is awaited.",
        )
    cluster = ClaimCluster(
        Opening(_pool(pool, asynchronous=asynchronous), body=body),
        timeout_s=None if timeout is None else _seconds(timeout),
        asynchronous=asynchronous,
        quiet=quiet,
    )
    if wait and not asynchronous:
        cluster.wait_until_running()
    elif not asynchronous:
        cluster.request()
    return cluster


def attach(
    claim: str | ClaimView,
    *,
    release_on_close: bool = False,
    asynchronous: bool = False,
    quiet: bool = False,
    pool: Pool | None = None,
) -> ClaimCluster:
    """Get the Dask cluster of a claim you hold already, by its id or name.

    Closing it leaves the claim as it is, unless `release_on_close`.

    Raises:
        PoolError: NotFound if you hold no such claim, ClaimLost if it ends while it is waited for.
    """
    pool = _pool(pool, asynchronous=asynchronous)
    cluster = ClaimCluster(
        Opening(pool, name_or_id=claim) if isinstance(claim, str) else Opening(pool, view=claim),
        release_on_close=release_on_close,
        asynchronous=asynchronous,
        quiet=quiet,
    )
    if not asynchronous:
        cluster.wait_until_running()
    return cluster


def claims(*, ended: bool = False, pool: Pool | None = None) -> Sequence[ClaimView]:
    """The claims you hold, and all that may be seen by you if you are an admin."""
    pool = pool or current_pool()
    return pool.background.run(lambda _say: pool.client.claims(ended=ended))


def status(*, pool: Pool | None = None) -> StatusView:
    """The pool in one look, and who you are to it."""
    pool = pool or current_pool()
    return pool.background.run(lambda _say: pool.client.status())


def _pool(pool: Pool | None, *, asynchronous: bool) -> Pool | None:
    # Finding it may take seconds: on a running loop that is left to the moment it is awaited.
    return pool if pool is not None or asynchronous else current_pool()


def _seconds(duration: Duration) -> float:
    return parse_duration(duration, field="timeout").total_seconds()
