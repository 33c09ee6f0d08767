"""What the pool says when it is asked: whether it answers, its versions, devices, clock.

Looked at once by `examination`, for all checks that want to know. No pool is started for it.
"""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from jupyter_gpupool.client import discovery
from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.background import background
from jupyter_gpupool.client.errors import unreachable
from jupyter_gpupool.client.http import tls_context
from jupyter_gpupool.client.pool_client import PoolClient
from jupyter_gpupool.pool.errors import NotFound, PoolError
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.api import DeviceView, StatusView
from jupyter_gpupool.protocol.using import EnvironmentView

_KNOCK_WITHIN_S = 1.0
_ANSWER_WITHIN_S = 2.5
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """The pool that this user's notebooks use.

    Attributes:
        address: None if none is named and none runs, or what is named is of no use.
        error: Why it could not be asked, else None.
        environments: None if the manager is too old to tell.
        clock_ahead_s: By how much our clock is ahead of the manager's; None if it did not say.
    """

    address: PoolAddress | None = None
    error: PoolError | None = None
    status: StatusView | None = None
    environments: Sequence[EnvironmentView] | None = None
    devices: Sequence[DeviceView] = ()
    clock_ahead_s: float | None = None


def look_at_pool(environ: Mapping[str, str]) -> PoolView:
    """Find the pool and ask it everything, within a few seconds."""
    try:
        address = discovery.find(environ)
    except PoolError as error:
        return PoolView(error=error)
    if address is None:
        return PoolView()
    try:
        client = PoolClient(address)
        _knock(address)
        return background.run(lambda _say: _ask(client, address))
    except PoolError as error:
        return PoolView(address=address, error=error)


def _knock(address: PoolAddress) -> None:
    """See whether anybody listens; the client would try for seconds, and longer for a name.

    Here, in a thread that may be left behind: asyncio's own would hold up the end of the process.
    """
    parts = urlsplit(address.url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    if _goes_through_proxy(address, parts.scheme, host):
        return
    try:
        socket.create_connection((host, port), timeout=_KNOCK_WITHIN_S).close()
    except OSError as error:
        raise unreachable(address.base, error.strerror or str(error)) from error


def _goes_through_proxy(address: PoolAddress, scheme: str, host: str) -> bool:
    proxies = getproxies()
    named = scheme in proxies or "all" in proxies
    return named and not address.is_loopback and not proxy_bypass(host, proxies)


async def _ask(client: PoolClient, address: PoolAddress) -> PoolView:
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            status = await client.status()
            environments, devices, ahead_s = await asyncio.gather(
                _environments(client), client.devices(), _clock_ahead_s(address)
            )
    except TimeoutError as error:
        raise unreachable(
            address.base, f"no answer within {format_duration(_ANSWER_WITHIN_S)}"
        ) from error
    finally:
        await client.close()
    return PoolView(
        address=address,
        status=status,
        environments=environments,
        devices=devices,
        clock_ahead_s=ahead_s,
    )


async def _environments(client: PoolClient) -> Sequence[EnvironmentView] | None:
    try:
        return await client.environments()
    except NotFound:
        return None


async def _clock_ahead_s(address: PoolAddress) -> float | None:
    import httpx  # noqa: PLC0415 - as in `client.http`

    verify: Any = tls_context(address) if address.base.startswith("https") else False
    trust_env = not address.is_loopback
    async with httpx.AsyncClient(verify=verify, trust_env=trust_env) as http:
        before = datetime.now(UTC)
        try:
            answer = await http.get(address.base + "/health")
        except httpx.HTTPError:
            return None
        after = datetime.now(UTC)
    return clock_ahead_s(answer.headers.get("date", ""), before + (after - before) / 2)


def clock_ahead_s(date: str, here: datetime) -> float | None:
    """By how much `here` is ahead of what an HTTP Date header says; None if that is no date."""
    try:
        there = parsedate_to_datetime(date)
    except ValueError:
        return None
    if there.tzinfo is None:
        return None
    return (here - there).total_seconds()
