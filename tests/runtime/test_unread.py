"""Results that no worker can read when a claim resumes: told, kept, and in nobody's way."""

import asyncio
import os

import pytest
from distributed import wait

from jupyter_gpupool.protocol.keeping import HOLDER_NAME, KeepPhase, UnkeptReason, Wish

from .hibernating import client_of, hibernate, keeping, order, resume, until_phase

pytestmark = pytest.mark.asyncio(loop_scope="module")
HAS_MODULE = {"env": {"HAS_MODULE": "1"}}


def _make():
    """What makes something of a module that the next worker may not have. It is sent by value."""

    class Thing:
        def __init__(self, value):
            self.value = value

        def __reduce__(self):
            return _read, (self.value,)

    def _read(value):
        if os.environ.get("HAS_MODULE") != "1":
            raise ModuleNotFoundError("No module named 'of_mine'")
        return Thing(value)

    def make(value):
        return Thing(value)

    return make


async def _results(client):
    """One that needs the module, and some that do not."""
    thing = client.submit(_make(), 42, key="thing-1")
    others = client.map(lambda n: (n, os.getpid()), range(5), pure=False)
    await wait([thing, *others])
    return thing, others


async def test_it_is_told_with_its_key_and_the_reason(host, claim):
    """The claim is awake within moments, not on its way back for ever; the others are as before."""
    state = await host.up(claim, "lease-a", **HAS_MODULE)
    async with client_of(claim, state) as client:
        thing, others = await _results(client)
        before = await client.gather(others)
        await hibernate(host, claim)
        said = await resume(host, claim, "lease-b", "lease-c")
        assert (said.unread, said.held) == (1, 1)
        [unkept] = said.unkept
        assert (unkept.key, unkept.reason) == ("thing-1", UnkeptReason.UNREADABLE)
        assert unkept.detail == "ModuleNotFoundError: No module named 'of_mine'"
        assert await client.gather(others) == before
        assert thing.status == "finished"


@pytest.mark.parametrize("when", ["while it hibernates", "once it is awake"])
async def test_task_that_needs_it_fails_and_says_why(host, claim, when):
    """It alone: a task that needs another result is done, though both are asked for together."""
    state = await host.up(claim, "lease-a", **HAS_MODULE)
    async with client_of(claim, state) as client:
        thing, others = await _results(client)
        await hibernate(host, claim)
        if when == "once it is awake":
            await resume(host, claim, "lease-b")
        needs = [client.submit(lambda it: it.value, thing, pure=False)]
        needs += [client.submit(lambda it: it[0], each, pure=False) for each in others]
        if when == "while it hibernates":
            await resume(host, claim, "lease-b")
        assert await client.gather(needs[1:]) == list(range(5))
        async with asyncio.timeout(30):
            with pytest.raises(RuntimeError, match=r"thing-1 .*ModuleNotFoundError"):
                await needs[0]


async def test_worker_that_can_read_it_is_found(host, claim):
    """Each worker is asked; one of several is enough."""
    state = await host.up(claim, "lease-a", **HAS_MODULE)
    async with client_of(claim, state) as client:
        thing, _ = await _results(client)
        await hibernate(host, claim)
        address = host.state_of(claim).address
        await host.fork_worker(claim, "lease-b", address=address)
        await host.fork_worker(claim, "lease-c", address=address, **HAS_MODULE)
        await host.until(lambda: host.is_complete(claim, ("lease-b", "lease-c")))
        order(host, claim, Wish.AWAKE)
        assert (await until_phase(host, claim, KeepPhase.AWAKE)).unread == 0
        assert await host.end_of(claim, HOLDER_NAME) == 0
        where = await client.who_has([thing])
        readers = await client.run(os.getenv, "HAS_MODULE")
        assert [readers[address] for address in where["thing-1"]] == ["1"]


async def test_worker_that_comes_later_gets_it(host, claim):
    """Its user has mended what was missing; then nothing is left to hold."""
    state = await host.up(claim, "lease-a", **HAS_MODULE)
    async with client_of(claim, state) as client:
        thing, _ = await _results(client)
        await hibernate(host, claim)
        assert (await resume(host, claim, "lease-b")).unread == 1
        await host.fork_worker(claim, "lease-c", address=state.address, **HAS_MODULE)
        assert await host.end_of(claim, HOLDER_NAME) == 0
        there = {"workers": ["lease-c"], "pure": False}
        assert await client.submit(lambda it: it.value, thing, **there) == 42


async def test_holder_goes_when_nobody_wants_it_any_more(host, claim):
    """Its user lets go of the result."""
    state = await host.up(claim, "lease-a", **HAS_MODULE)
    async with client_of(claim, state) as client:
        thing, others = await _results(client)
        await hibernate(host, claim)
        assert (await resume(host, claim, "lease-b")).unread == 1
        thing.release()
        assert await host.end_of(claim, HOLDER_NAME) == 0
        await host.until(lambda: not keeping(host, claim).unread)
        assert len(await client.gather(others)) == 5


async def test_claim_hibernates_again_with_what_was_left(host, claim):
    """What stays with the holder is kept already, and keeps nothing else from it."""
    state = await host.up(claim, "lease-a", **HAS_MODULE)
    async with client_of(claim, state) as client:
        thing, others = await _results(client)
        await hibernate(host, claim)
        await resume(host, claim, "lease-b")
        order(host, claim, Wish.SURVEYED)
        await host.until(lambda: keeping(host, claim).surveyed)
        assert keeping(host, claim).unkept_count == 0
        order(host, claim, Wish.HIBERNATED)
        assert (await until_phase(host, claim, KeepPhase.HIBERNATED)).held == 6
        await resume(host, claim, "lease-c", **HAS_MODULE)
        assert await client.submit(lambda it: it.value, thing, pure=False) == 42
        assert len(await client.gather(others)) == 5
