"""`gpupool.status()`, `claims()`, `explain(name)` and the other questions that need no Dask.

Reached through the package's lazy attributes. A claim that is not named is the one this kernel
uses, or the only one there is.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_gpupool.client.pools import Pool, given_or_current
from jupyter_gpupool.protocol.api import ClaimView

from .answers import (
    Claims,
    Environments,
    Explanation,
    Logs,
    PoolStatus,
    claim_as_it_was,
    explanation_of,
    kept_for,
    kept_s,
    logs_of,
    status_of,
)
from .left_behind import first_look, left_behind_text
from .next_cell import heard
from .terms import Duration, Gpus, bounds_of
from .voice import Voice
from .which import Which, find, name_of, pool_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from jupyter_gpupool.client.background import Say
    from jupyter_gpupool.client.pool_client import PoolClient

_T = TypeVar("_T")


def status(*, pool: Pool | None = None) -> PoolStatus:
    """The pool in one look, and who you are to it."""
    return _ask(pool, status_of)


def claims(*, ended: bool = False, pool: Pool | None = None) -> Claims:
    """The claims you hold, and all that may be seen by you if you are an admin."""
    pool = given_or_current(pool)

    async def listed(say: "Say") -> Claims:
        look = first_look(pool)
        views = Claims(await pool.client.claims(ended=ended))
        for line in left_behind_text(await look) if look else ():
            say(line)
        return views

    return pool.background.run(listed, Voice().say)


def environments(*, pool: Pool | None = None) -> Environments:
    """The Python environments that workers can run in: what `environment=` takes."""

    async def listed(client: "PoolClient") -> Environments:
        return Environments(await client.environments())

    return _ask(pool, listed)


def explain(name: Which = "", *, pool: Pool | None = None) -> Explanation:
    """Why a claim is where it is; or when and why it ended, if none of that name lives.

    Args:
        name: Its name or id, its cluster, or one of `claims()`; "" is the one this kernel uses,
            or the only one you hold.
        pool: Another pool than the one the environment names.

    Raises:
        PoolError: NotFound if there is no such claim, BadRequest if several are meant.
    """
    return _of(name, pool, explanation_of, ended=True)


def logs(
    name: Which = "", process: str | None = None, lines: int = 100, *, pool: Pool | None = None
) -> Logs:
    """The last lines of a claim's processes, or of one: "scheduler" or a lease's id.

    Of the claim of that name that lives, else of the one that ended last.

    Args:
        name: As of `explain`.
        process: Which one; None is all.
        lines: How many of each.
        pool: As of `explain`.
    """

    async def last_lines(client: "PoolClient", claim_id: str) -> Logs:
        return await logs_of(client, claim_id, process, lines)

    return _of(name, pool, last_lines, ended=True)


def keep_alive(
    name: Which = "", duration: Duration = "1h", reason: str = "", *, pool: Pool | None = None
) -> datetime | None:
    """Have a claim not taken as idle from now on, and say until when; 0 takes that back.

    Args:
        name: As of `explain`.
        duration: For how long, such as "1h".
        reason: Shown to admins.
        pool: As of `explain`.
    """
    for_s = kept_s(duration)
    return _of(name, pool, lambda client, claim_id: kept_for(client, claim_id, for_s, reason))


def hibernate(name: Which = "", reason: str = "", *, pool: Pool | None = None) -> ClaimView:
    """Give a claim's devices back and keep its results; its client stays connected.

    Tasks that are submitted meanwhile wait until it is resumed.

    Args:
        name: As of `explain`.
        reason: Kept with the claim.
        pool: As of `explain`.

    Raises:
        PoolError: Conflict if it does not run.
    """
    view = _of(name, pool, lambda client, claim_id: client.hibernate(claim_id, reason))
    heard(view)
    return claim_as_it_was(view)


def resume(name: Which = "", *, pool: Pool | None = None) -> ClaimView:
    """Have devices again for a claim that hibernates, as soon as the pool has room.

    Args:
        name: As of `explain`.
        pool: As of `explain`.

    Raises:
        PoolError: Conflict if it does not hibernate.
    """
    view = _of(name, pool, lambda client, claim_id: client.resume(claim_id))
    heard(view)
    return claim_as_it_was(view)


def release(name: Which = "", reason: str = "", *, pool: Pool | None = None) -> ClaimView:
    """Give a claim back, whoever uses it. What has ended already stays as it is.

    Args:
        name: As of `explain`.
        reason: Kept with the claim.
        pool: As of `explain`.
    """
    view = _of(name, pool, lambda client, claim_id: client.release(claim_id, reason))
    heard(view)
    return claim_as_it_was(view)


def scale(name: Which, gpus: Gpus, *, pool: Pool | None = None) -> ClaimView:
    """Have a claim want this many devices, or (least, most), from now on.

    Args:
        name: As of `explain`.
        gpus: A number, which also lowers the least it keeps; or both bounds.
        pool: As of `explain`.

    Raises:
        BadRequest: If that is no number of devices.
    """
    bounds = bounds_of(gpus)

    async def scaled(client: "PoolClient", claim_id: str) -> ClaimView:
        least = bounds.minimum
        if not isinstance(gpus, tuple | list):
            least = min(least, (await client.claim(claim_id)).workers.min)
        return await client.scale(claim_id, least, bounds.maximum)

    return claim_as_it_was(_of(name, pool, scaled))


def _of(
    name: Which,
    pool: Pool | None,
    ask: "Callable[[PoolClient, str], Coroutine[Any, Any, _T]]",
    *,
    ended: bool = False,
) -> _T:
    called = name_of(name)

    async def found(client: "PoolClient") -> _T:
        return await ask(client, (await find(client, called, ended=ended)).id)

    return _ask(pool or pool_of(name), found)


def _ask(pool: Pool | None, ask: "Callable[[PoolClient], Coroutine[Any, Any, _T]]") -> _T:
    pool = given_or_current(pool)
    return pool.background.run(lambda _say: ask(pool.client), Voice().say)
