"""Tells the pool that this kernel uses a claim, and when it does so no more.

Used by `cluster`; lives on the background loop. Nobody waits for it: a claim is of use whether or
not the pool knows from where.
"""

import asyncio
import contextlib
import os
from collections import Counter

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.pool.errors import PoolError

from .this_kernel import this_kernel

_PATIENCE_S = 1.0
_uses: Counter[tuple[str, str]] = Counter()
"""How many clusters of this process use a claim: the last one detaches."""


class Attachment:
    """One cluster's use of one claim."""

    def __init__(self, pool: Pool, claim_id: str) -> None:
        self._pool = pool
        self._claim_id = claim_id
        self._telling: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """This kernel uses the claim; on the background loop, returns at once."""
        if self._telling is None:
            _uses[self._key] += 1
            self._telling = asyncio.create_task(self._attach(), name="gpupool attach")

    async def end(self) -> None:
        """It does so no more; within about a second, whatever the manager does."""
        if self._telling is None:
            return
        telling, self._telling = self._telling, None
        _uses[self._key] -= 1
        if not _uses[self._key]:
            with contextlib.suppress(PoolError, TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    # The other way round, it would be attached for good.
                    await asyncio.wait([telling])
                    await self._detach()

    async def _attach(self) -> None:
        kernel = this_kernel()
        with contextlib.suppress(PoolError):
            await self._pool.client.attach_kernel(self._claim_id, kernel.id, kernel.body())

    async def _detach(self) -> None:
        await self._pool.client.detach_kernel(
            self._claim_id, this_kernel().id, patience_s=_PATIENCE_S
        )

    @property
    def _key(self) -> tuple[str, str]:
        return self._pool.address.url, self._claim_id


os.register_at_fork(after_in_child=_uses.clear)
