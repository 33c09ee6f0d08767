"""`gpupool.claim(…)` and its neighbours: what a notebook user calls.

Reached through the package's lazy attributes. Finds the pool, turns words into terms, and hands
over a Dask cluster. What needs no Dask is in `asking`.
"""

import asyncio
from typing import Unpack

from jupyter_gpupool.client.pools import Pool, given_or_current
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import parse_duration
from jupyter_gpupool.protocol.api import ClaimView

from .cluster import ClaimCluster
from .opening import Opening
from .reclaiming import OnReclaim, check_callback
from .terms import ClaimTerms, Duration, Gpus, body_of
from .used_from import used_from
from .which import Which, name_of, pool_of


def claim(
    gpus: Gpus = 2,
    *,
    wait: bool = True,
    timeout: Duration | None = None,
    asynchronous: bool = False,
    quiet: bool = False,
    on_reclaim: OnReclaim | None = None,
    pool: Pool | None = None,
    **terms: Unpack[ClaimTerms],
) -> ClaimCluster:
    """Claim devices and get a Dask cluster with one worker on each.

    While it waits it prints its place in line and the reason; Ctrl-C gives the claim up.

    Args:
        gpus: How many, or (least to start with, most to grow to); 0.5 is a part of one, whose rest
            others may hold.
        wait: False returns at once; the first use of the cluster then waits.
        timeout: Give up after this time, such as "10 min"; None waits for ever.
        asynchronous: For use with `await` or `async with` on a running loop.
        quiet: Print nothing.
        on_reclaim: Called in a thread of its own when something is about to be taken back.
        pool: Another pool than the one the environment names.
        terms: name, model, gpus_per_worker, gpu_memory (a part of a device of that size),
            min_gpu_memory, memory, nthreads, time_limit, environment, env, priority, on_idle and
            idle_after (what becomes of it when it is idle, and after how long, within the bounds of
            the policy), and dask-cuda's options for each worker: see `ClaimTerms`.

    Raises:
        PoolError: BadRequest for terms that make no sense, StillWaiting after `timeout`, ClaimLost
            if it ends before it runs, Unavailable if there is no pool to ask.
    """
    body = body_of(gpus, terms, used_from())
    if asynchronous and not wait:
        raise BadRequest(
            "wait=False is for blocking use.",
            field="wait",
            hint="An asynchronous claim waits when it is awaited.",
        )
    if on_reclaim is not None:
        check_callback(on_reclaim)
    _check_loop(asynchronous=asynchronous)
    cluster = ClaimCluster(
        Opening(_pool(pool, asynchronous=asynchronous), body=body),
        timeout_s=None if timeout is None else _seconds(timeout),
        asynchronous=asynchronous,
        quiet=quiet,
    )
    if on_reclaim is not None:
        cluster.on_reclaim(on_reclaim)
    if wait and not asynchronous:
        cluster.wait_until_running()
    elif not asynchronous:
        cluster.request()
    return cluster


def attach(
    claim: Which = "",
    *,
    release_on_close: bool = False,
    asynchronous: bool = False,
    quiet: bool = False,
    pool: Pool | None = None,
) -> ClaimCluster:
    """Get the Dask cluster of a claim you hold already.

    Several notebooks may do so with one claim at once. Closing it leaves the claim as it is,
    unless `release_on_close`.

    Args:
        claim: Its id or name, its cluster, or one of `claims()`; "" is the one of this notebook,
            or the only one you hold.
        release_on_close: Whether closing it gives the claim back.
        asynchronous: As of `claim`.
        quiet: Print nothing.
        pool: As of `claim`.

    Raises:
        PoolError: NotFound if you hold no such claim, BadRequest if several are meant, ClaimLost
            if it ends while it is waited for.
    """
    name = name_of(claim)
    _check_loop(asynchronous=asynchronous)
    pool = _pool(pool or pool_of(claim), asynchronous=asynchronous)
    cluster = ClaimCluster(
        Opening(pool, view=claim) if isinstance(claim, ClaimView) else Opening(pool, name=name),
        release_on_close=release_on_close,
        asynchronous=asynchronous,
        quiet=quiet,
    )
    if not asynchronous:
        cluster.wait_until_running()
    return cluster


def _pool(pool: Pool | None, *, asynchronous: bool) -> Pool | None:
    # Finding it may take seconds: on a running loop that is left to the moment it is awaited.
    return None if pool is None and asynchronous else given_or_current(pool)


def _check_loop(*, asynchronous: bool) -> None:
    if asynchronous and not _is_on_a_loop():
        raise BadRequest(
            "asynchronous=True is for code that runs on an event loop, and none runs here.",
            field="asynchronous",
            hint="Claim within an async function, or leave it out.",
        )


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _seconds(duration: Duration) -> float:
    return parse_duration(duration, field="timeout").total_seconds()
