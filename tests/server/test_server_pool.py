"""The pool as a Jupyter server knows it: found at first use, and let go in time."""

import asyncio
import time
from pathlib import Path

import pytest

from jupyter_gpupool.client import discovery
from jupyter_gpupool.pool.errors import BadRequest, Unavailable
from jupyter_gpupool.server.server_pool import ServerPool


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerPool:
    """A server's pool where none is named and none runs."""
    for name in (discovery.URL, discovery.TOKEN, discovery.TOKEN_FILE, discovery.CA):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    return ServerPool()


@pytest.fixture
def named(pool: ServerPool, monkeypatch: pytest.MonkeyPatch) -> ServerPool:
    """The same, with a pool that is named."""
    monkeypatch.setenv(discovery.URL, "http://127.0.0.1:9")
    monkeypatch.setenv(discovery.TOKEN, "gpt_x")
    return pool


async def test_looking_starts_nothing(pool: ServerPool) -> None:
    """A kernel that comes up is no reason for a pool."""
    assert await pool.known() is None
    with pytest.raises(Unavailable, match="not running"):
        await pool.use(start=False)


async def test_a_named_pool_is_kept(named: ServerPool) -> None:
    """One connection and one event stream for all who ask."""
    first, second = await asyncio.gather(named.use(), named.use())
    assert first is second
    await named.end(asyncio.sleep(0))


async def test_another_pool_takes_the_place(
    named: ServerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that was replaced counts from the next request on."""
    first = await named.use()
    monkeypatch.setenv(discovery.TOKEN, "gpt_y")
    assert (await named.use()) is not first
    await named.end(asyncio.sleep(0))


async def test_a_pool_that_cannot_be_used_says_why(
    pool: ServerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the client's own words."""
    monkeypatch.setenv(discovery.TOKEN, "gpt_x")
    with pytest.raises(BadRequest, match="GPUPOOL_URL is not"):
        await pool.use()


async def test_a_fault_in_the_background_is_told_once(
    named: ServerPool, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for what is spawned, so it would be lost; a pool that is silent is no fault."""

    async def fail(error: Exception) -> None:
        raise error

    await asyncio.wait([named.spawn(fail(Unavailable("silent"))), named.spawn(fail(KeyError(1)))])
    await asyncio.sleep(0)
    told = [record.exc_info[0] for record in caplog.records if record.exc_info]
    assert told == [KeyError]


async def test_the_end_waits_for_nobody(named: ServerPool) -> None:
    """Two seconds, whatever hangs, and nothing is raised."""
    await named.use()

    async def fail() -> None:
        raise Unavailable("The manager does not answer.")

    named.spawn(asyncio.sleep(3600))
    failing = named.spawn(fail())
    began_s = time.monotonic()
    await named.end(asyncio.sleep(3600))
    assert time.monotonic() - began_s < 2
    assert failing.done()
    assert not named.is_known
