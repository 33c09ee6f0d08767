"""The same on a running event loop: in a service, or with `await` in a notebook cell."""

# ruff: noqa: INP001, T201
import asyncio

from distributed import Client

import jupyter_gpupool as gpupool


async def main() -> None:
    """Claim one to two GPUs: start with one, take the second when it is free."""
    async with (
        gpupool.claim(gpus=(1, 2), name="asynchronous", asynchronous=True) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        squares = client.map(lambda number: number**2, range(10))
        print("sum of squares:", sum(await client.gather(squares)))


if __name__ == "__main__":
    asyncio.run(main())
