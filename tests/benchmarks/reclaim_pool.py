"""How soon devices are free again, and whether the pool answers while all claims hibernate at once.

    python tests/benchmarks/reclaim_pool.py [--json] [--rounds 5] [--claims 200]

A whole embedded pool: from the wish to release a claim that holds no result, or to have it
hibernate, until its device may be leased; from the wish to resume until a task has its result. Then
so many claims hibernate at one moment while somebody asks for the pool's status over and over;
their agent is a stand-in, for so many schedulers, workers and holders would take a large host.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from harness import Figure, Target, finish, median, note, options, spread, table
from our_pool import devices, wait_until_free, warm_pool

sys.path.insert(0, str(Path(__file__).parents[1] / "manager"))

from manager_harness.agent_player import an_agent
from websockets.asyncio.client import connect

from jupyter_gpupool.agent.link import link_url
from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pool_client import PoolClient
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.protocol.api import ClaimBody, Role, TokenBody, Workers
from jupyter_gpupool.protocol.link import Desired, ToAgent

_LOOK_EVERY_S = 0.01
_LOOK_AT_ALL_EVERY_S = 0.2
_WITHIN_S = 240.0
_AT_ONCE = 10
_MODEL = "stand-in"


@dataclass(slots=True)
class Times:
    """Seconds of each round."""

    released: list[float] = field(default_factory=list)
    hibernated: list[float] = field(default_factory=list)
    resumed: list[float] = field(default_factory=list)


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    times = Times()
    with devices(1) as on, warm_pool(on) as pool:
        note(f"{chosen.rounds} rounds on {on.what}…")
        for _ in range(chosen.rounds):
            times.released.append(_freed(pool, _release))
            times.hibernated.append(_freed(pool, _hibernate))
            times.resumed.append(_resumed(pool))
    stall_s = asyncio.run(_stall(chosen.claims))
    show(times, stall_s, chosen.claims)
    finish(figures(times, stall_s), as_json=chosen.json)


def _freed(pool: Pool, ask: "Callable[[PoolClient, str], Awaitable[object]]") -> float:
    with claim(1, pool=pool, quiet=True) as cluster:

        async def until_free(_say: object) -> float:
            began = time.perf_counter()
            await ask(pool.client, cluster.claim_id)
            await _until(partial(_has_free, pool.client), _LOOK_EVERY_S)
            return time.perf_counter() - began

        took_s = pool.background.run(until_free)
    wait_until_free(pool)
    return took_s


async def _release(client: PoolClient, claim_id: str) -> None:
    await client.release(claim_id)


async def _hibernate(client: PoolClient, claim_id: str) -> None:
    await client.hibernate(claim_id)


def _resumed(pool: Pool) -> float:
    with claim(1, pool=pool, quiet=True) as cluster, cluster.get_client() as client:
        kept = client.submit(sum, [1, 2])
        assert kept.result() == 3
        cluster.hibernate()
        while cluster.explain().phase is not Phase.HIBERNATED:
            time.sleep(_LOOK_EVERY_S)
        wait_until_free(pool)
        began = time.perf_counter()
        cluster.resume()
        assert client.submit(sum, [kept, 4]).result() == 7
        took_s = time.perf_counter() - began
    wait_until_free(pool)
    return took_s


async def _stall(count: int) -> float:
    """The longest that anybody waited for an answer while so many claims hibernated."""
    with (
        tempfile.TemporaryDirectory(prefix="gpupool-bench-") as folder,
        EmbeddedPool(Path(folder), options=("--simulated=1",)) as embedded,
    ):
        assert embedded.address is not None, "a started pool has an address"
        # Whoever asks has a connection of their own: it is the manager that is measured.
        client, other = PoolClient(embedded.address), PoolClient(embedded.address)
        agent = asyncio.create_task(_stand_in(embedded.address.url, client, count))
        try:
            ids = await _claims(client, count)
            note(f"{count} claims run; all hibernate now…")
            async with _asking(other) as slowest:
                await asyncio.gather(*(client.hibernate(claim_id) for claim_id in ids))
                await _until_all(client, count, Phase.HIBERNATED)
            return max(slowest)
        finally:
            agent.cancel()
            await client.close()
            await other.close()


async def _stand_in(url: str, client: PoolClient, devices: int) -> None:
    """An agent that says of everything it is told to do, at once, that it is done."""
    player = an_agent(_MODEL, devices)
    player.devices = tuple(replace(device, model=_MODEL) for device in player.devices)
    token = await client.make_token(TokenBody(role=Role.AGENT))
    headers = {"Authorization": f"Bearer {token.secret}"}
    async with connect(link_url(url), additional_headers=headers, max_size=None) as link:
        await link.send(player.report().model_dump_json())
        async for text in link:
            message = ToAgent.validate_json(text)
            if isinstance(message, Desired):
                player.make_so(message)
                player.all_stopped()
                player.all_run()
                await link.send(player.report().model_dump_json())


async def _claims(client: PoolClient, count: int) -> list[str]:
    ids: list[str] = []
    await _until(partial(_has_devices, client, count), _LOOK_EVERY_S)
    for begin in range(0, count, _AT_ONCE):
        some = min(_AT_ONCE, count - begin)
        body = ClaimBody(workers=Workers(min=1, max=1), model=_MODEL)
        made = await asyncio.gather(*(client.request_claim(body) for _ in range(some)))
        ids += [view.id for view in made]
        await _until_all(client, len(ids), Phase.RUNNING)
    return ids


async def _until_all(client: PoolClient, count: int, phase: Phase) -> None:
    async def all_are() -> bool:
        views = await client.claims(limit=1000)
        return sum(view.phase is phase for view in views) >= count

    await _until(all_are, _LOOK_AT_ALL_EVERY_S)


async def _until(fits: Callable[[], Awaitable[bool]], every_s: float) -> None:
    async with asyncio.timeout(_WITHIN_S):
        while not await fits():  # noqa: ASYNC110 - what is waited for is in other processes
            await asyncio.sleep(every_s)


async def _has_free(client: PoolClient) -> bool:
    return (await client.status()).free > 0


async def _has_devices(client: PoolClient, count: int) -> bool:
    return (await client.status()).devices > count


@contextlib.asynccontextmanager
async def _asking(client: PoolClient) -> AsyncIterator[list[float]]:
    took: list[float] = [0.0]

    async def ask_on() -> None:
        while True:
            began = time.perf_counter()
            await client.status()
            took.append(time.perf_counter() - began)
            await asyncio.sleep(_LOOK_EVERY_S)

    asking = asyncio.create_task(ask_on())
    try:
        yield took
    finally:
        asking.cancel()


def show(times: Times, stall_s: float, claims: int) -> None:
    """Print what was measured."""
    rows = [
        ("release → device free", *spread(times.released)),
        ("hibernate → device free", *spread(times.hibernated)),
        ("resume → result of a task", *spread(times.resumed)),
    ]
    table("Milliseconds", ("way", "rounds", "median", "fastest", "slowest"), rows)
    note(f"Slowest answer while {claims} claims hibernated: {stall_s * 1000:.0f} ms.")


def figures(times: Times, stall_s: float) -> list[Figure]:
    """The named numbers and their targets."""
    return [
        Figure(
            key="deadline_to_free_s",
            meaning="release of a claim without results until its device is free, s",
            value=median(times.released),
            target=Target(bound=1.0),
        ),
        Figure(
            key="hibernate_to_free_s",
            meaning="the same of one that hibernates, s",
            value=median(times.hibernated),
        ),
        Figure(
            key="resumed_task_s",
            meaning="from the wish to resume in a whole pool until a task has its result, s",
            value=median(times.resumed),
            target=Target(bound=0.5),
        ),
        Figure(
            key="stall_s",
            meaning="slowest answer of the API while all claims hibernate at once, s",
            value=stall_s,
            target=Target(bound=1.0),
        ),
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5, help="of each way (5)")
    parser.add_argument("--claims", type=int, default=200, help="that hibernate at once (200)")


if __name__ == "__main__":
    main()
