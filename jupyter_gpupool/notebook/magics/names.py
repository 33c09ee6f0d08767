"""Names that a user may be about to write: claims, models, environments. For completion only.

Called by `words`. Answers at once with what was known last, and lets a thread ask the pool anew;
the first time it waits a moment for it. It never starts a pool.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.errors import NotFound, PoolError

if TYPE_CHECKING:
    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.client.pools import Pool
    from jupyter_gpupool.protocol.using import EnvironmentView

_FRESH_FOR_S = 3.0
_WAIT_S = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What is known."""

    claims: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()


class _Cache:
    def __init__(self) -> None:
        self._names = Names()
        self._known_at: float | None = None
        self._asking: threading.Thread | None = None
        self._pool: Pool | None = None

    def get(self) -> Names:
        is_fresh = self._known_at is not None and time.monotonic() - self._known_at < _FRESH_FOR_S
        if is_fresh:
            return self._names
        if self._asking is None or not self._asking.is_alive():
            self._asking = threading.Thread(target=self._ask, daemon=True, name="gpupool names")
            self._asking.start()
        self._asking.join(_WAIT_S)
        return self._names

    def _ask(self) -> None:
        # Whoever presses Tab did not ask for an error.
        with contextlib.suppress(PoolError):
            pool = self._found_pool()
            self._names = (
                Names() if pool is None else pool.background.run(lambda _say: _ask(pool.client))
            )
            self._known_at = time.monotonic()

    def _found_pool(self) -> "Pool | None":
        from jupyter_gpupool.client import discovery  # noqa: PLC0415 - 0.4 s, in this thread
        from jupyter_gpupool.client.pools import Pool  # noqa: PLC0415 - as above

        address = discovery.find()
        if address is None:
            return None
        if self._pool is None or self._pool.address != address:
            self._pool = Pool(address)
        return self._pool


_cache = _Cache()


def known_names() -> Names:
    """What is known now, within a fifth of a second."""
    return _cache.get()


async def _ask(client: "PoolClient") -> Names:
    claims, devices, environments = await asyncio.gather(
        client.claims(), client.devices(), _environments(client)
    )
    return Names(
        claims=_sorted(view.name for view in claims),
        models=_sorted(view.device.model for view in devices),
        environments=_sorted(view.name for view in environments),
    )


async def _environments(client: "PoolClient") -> "Sequence[EnvironmentView]":
    try:
        return await client.environments()
    except NotFound:
        # A manager of before there were any.
        return ()


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))
