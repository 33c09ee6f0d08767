"""How fast a claim's results go to its holder and come back, beside a plain move between workers.

    python tests/benchmarks/reclaim.py [--json] [--rounds 3]

A gibibyte of results in keys of 1 B, 64 MiB - 1, 64 MiB, 64 MiB + 1 and 256 MiB. Each round moves
it by `retire_workers` from one worker to another, then has it hibernated and resumed: between
processes of one host, and as between two, which is all over TLS. All of them are forked from one
zygote. Afterwards each result is compared with what it was.
"""

import argparse
import asyncio
import sys
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from harness import Figure, Target, finish, median, note, options, spread, table

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from conftest import Host
from distributed import wait
from hibernating import client_of, keeping, order, until_phase

from jupyter_gpupool.protocol.keeping import HOLDER_NAME, KeepPhase, Wish

MIB = 2**20
SIZES = (*[1] * 8, *[64 * MIB - 1] * 4, *[64 * MIB] * 4, *[64 * MIB + 1] * 4, 256 * MIB)
_WORKER = {"memory_limit_bytes": 2**34, "device_memory_bytes": 2**34}
_HOLDER_MEMORY_BYTES = 2048 * MIB
_ANOTHER_HOST = "127.0.0.2"
_UP_WITHIN_S = 60.0


@dataclass(slots=True)
class Times:
    """Seconds of each round."""

    plain: list[float] = field(default_factory=list)
    hibernate: list[float] = field(default_factory=list)
    resume: list[float] = field(default_factory=list)
    hibernate_far: list[float] = field(default_factory=list)
    resume_far: list[float] = field(default_factory=list)
    first_result: list[float] = field(default_factory=list)


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    note(f"{sum(SIZES) / MIB:.0f} MiB in {len(SIZES)} results, {chosen.rounds} rounds…")
    times = asyncio.run(rounds(chosen.rounds))
    show(times)
    finish(figures(times), as_json=chosen.json)


async def rounds(count: int) -> Times:
    """In turns, so that the machine's moods are shared out."""
    times = Times()
    with tempfile.TemporaryDirectory(prefix="gpupool-bench-") as folder:
        host = Host(Path(folder))
        await host.socket.start()
        await host.zygotes.warm(None)
        try:
            for _ in range(count):
                await _on_a_claim(host, times, plain)
                await _on_a_claim(host, times, there_and_back)
                await _on_a_claim(host, times, there_and_back_far, listen=_ANOTHER_HOST)
                await _on_a_claim(host, times, first_result)
        finally:
            await host.down()
    return times


async def plain(host: Host, claim: Any, client: Any, times: Times) -> None:
    """What distributed does by itself when a worker goes."""
    results = await _results(client)
    sums = await _sums(client, results)
    await host.fork_worker(claim, "lease-b", address=host.state_of(claim).address, **_WORKER)
    await client.wait_for_workers(2)
    (leaving,) = {address for held in (await client.who_has(results)).values() for address in held}
    _touch_memory()
    began = time.perf_counter()
    assert await client.retire_workers([leaving], close_workers=True)
    times.plain.append(time.perf_counter() - began)
    _check(sums, await _sums(client, results))


async def there_and_back(host: Host, claim: Any, client: Any, times: Times) -> None:
    """To the holder, whose start counts, and back to a worker that is there."""
    to_s, back_s = await _there_and_back(host, claim, client)
    times.hibernate.append(to_s)
    times.resume.append(back_s)


async def there_and_back_far(host: Host, claim: Any, client: Any, times: Times) -> None:
    """The same with workers whose address is another host's."""
    to_s, back_s = await _there_and_back(host, claim, client, listen=_ANOTHER_HOST)
    times.hibernate_far.append(to_s)
    times.resume_far.append(back_s)


async def _there_and_back(
    host: Host, claim: Any, client: Any, **worker: Any
) -> tuple[float, float]:
    results = await _results(client)
    sums = await _sums(client, results)
    _touch_memory()
    began = time.perf_counter()
    order(host, claim, Wish.HIBERNATED)
    await host.fork_holder(claim, memory_bytes=_HOLDER_MEMORY_BYTES)
    await until_phase(host, claim, KeepPhase.HIBERNATED)
    to_s = time.perf_counter() - began
    options = _WORKER | worker
    await host.fork_worker(claim, "lease-b", address=host.state_of(claim).address, **options)
    await host.until(lambda: host.is_complete(claim, ["lease-b"]))
    _touch_memory()
    began = time.perf_counter()
    order(host, claim, Wish.AWAKE)
    await until_phase(host, claim, KeepPhase.AWAKE)
    back_s = time.perf_counter() - began
    _check(sums, await _sums(client, results))
    return to_s, back_s


async def first_result(host: Host, claim: Any, client: Any, times: Times) -> None:
    """From the wish to resume, the worker's start included, while all of it comes back."""
    results = await _results(client)
    await host.fork_holder(claim, memory_bytes=_HOLDER_MEMORY_BYTES)
    order(host, claim, Wish.HIBERNATED)
    await until_phase(host, claim, KeepPhase.HIBERNATED)
    await host.end_of(claim, "lease-a")
    waiting = client.submit(_size_of, results[0], pure=False)
    began = time.perf_counter()
    order(host, claim, Wish.AWAKE)
    await host.fork_worker(claim, "lease-b", address=host.state_of(claim).address, **_WORKER)
    assert await waiting == SIZES[0]
    times.first_result.append(time.perf_counter() - began)
    await until_phase(host, claim, KeepPhase.AWAKE)
    assert keeping(host, claim).held == 0
    await host.end_of(claim, HOLDER_NAME)


def _touch_memory() -> None:
    """Write to as much memory as will be needed, and let go of it.

    On a virtual machine a page that nothing has used for seconds may have gone back to its host
    and then costs four times as much: whoever comes first would pay for the others.
    """
    np.ones(sum(SIZES), np.uint8)


async def _on_a_claim(
    host: Host,
    times: Times,
    work: Callable[[Host, Any, Any, Times], Awaitable[None]],
    **worker: Any,
) -> None:
    claim = host.a_claim()
    try:
        state = await host.up(claim, "lease-a", **(_WORKER | worker))
        async with client_of(claim, state) as client:
            await work(host, claim, client, times)
    finally:
        host.kill_all(claim)


async def _results(client: Any) -> list[Any]:
    results = [client.submit(_bytes_of, n, size, pure=False) for n, size in enumerate(SIZES)]
    await wait(results, timeout=_UP_WITHIN_S)
    return results


async def _sums(client: Any, results: list[Any]) -> list[tuple[int, int]]:
    sums: list[tuple[int, int]] = await client.gather(client.map(_sum_of, results, pure=False))
    return sums


def _check(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    assert after == before, "a result came back changed"


def _bytes_of(number: int, size: int) -> Any:
    return np.arange(number, number + size, dtype=np.uint32).astype(np.uint8)


def _sum_of(array: Any) -> tuple[int, int]:
    return array.nbytes, zlib.crc32(array)


def _size_of(array: Any) -> int:
    return int(array.nbytes)


def show(times: Times) -> None:
    """Print what was measured."""
    rows = [
        ("retire_workers", *spread(times.plain)),
        ("hibernate", *spread(times.hibernate)),
        ("resume", *spread(times.resume)),
        ("hibernate, other host", *spread(times.hibernate_far)),
        ("resume, other host", *spread(times.resume_far)),
        ("first result", *spread(times.first_result)),
    ]
    table("Milliseconds", ("way", "rounds", "median", "fastest", "slowest"), rows)


def figures(times: Times) -> list[Figure]:
    """The named numbers and their targets."""
    return [
        _speed("hibernate_ratio", "speed of hibernating over retire_workers", times, "hibernate"),
        _speed("resume_ratio", "speed of resuming over retire_workers", times, "resume"),
        _speed("hibernate_far_ratio", "to a holder with another address", times, "hibernate_far"),
        _speed("resume_far_ratio", "and from there", times, "resume_far"),
        Figure(
            key="resume_first_result_s",
            meaning="from the wish to resume to a small task's result, s",
            value=median(times.first_result),
            target=Target(bound=0.5),
        ),
    ]


def _speed(key: str, meaning: str, times: Times, way: str) -> Figure:
    ours, theirs = median(getattr(times, way)), median(times.plain)
    value = theirs / ours if ours and theirs else None
    # One machine plays both hosts: what is far has to share its cores and has no target.
    target = None if way.endswith("_far") else Target(bound=0.7, at_most=False)
    return Figure(key=key, meaning=meaning, value=value, target=target)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="how often each way (3)")


if __name__ == "__main__":
    main()
