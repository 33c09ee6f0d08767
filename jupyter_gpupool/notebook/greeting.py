"""The connection to a claim's scheduler, opened while the workers still start.

Called by `cluster`, on its loop. A greeting that comes to nothing costs nothing: the scheduler of a
failed start is gone, and the next one is greeted in its place.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import Any

from distributed.core import rpc
from distributed.protocol.pickle import dumps

from jupyter_gpupool.protocol.api import ConnectionView

from .modules import modules_beside
from .modules_plugin import ModulesBeside, ModulesOnScheduler
from .security import ClaimSecurity

_log = logging.getLogger(__name__)
_WARMED = 16
"""Beyond this many workers the handshakes would slow each other down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeted:
    """A scheduler that answered."""

    security: ClaimSecurity
    scheduler: Any
    """An rpc object of distributed, with open connections in its pool."""

    async def warm_workers(self) -> None:
        """Have the scheduler connect to its workers: the first result need not wait for that."""
        with contextlib.suppress(OSError):
            workers = list((await self.scheduler.identity())["workers"])[:_WARMED]
            await self.scheduler.broadcast(
                msg={"op": "identity"}, workers=workers, on_error="ignore"
            )


class Greeting:
    """Greets ahead when told of a scheduler, and for certain when asked to."""

    def __init__(self) -> None:
        self._ahead: asyncio.Task[Greeted | None] | None = None

    def begin(self, connection: ConnectionView) -> None:
        """Greet ahead; a failure is nobody's concern yet."""
        self._ahead = asyncio.create_task(_greet(connection))

    async def finish(self, connection: ConnectionView) -> Greeted:
        """The scheduler of a claim that runs.

        Raises:
            ConnectionError: If it cannot be reached from here.
        """
        ahead = None if self._ahead is None else await self._ahead
        if ahead is not None and ahead.scheduler.address == connection.scheduler_address:
            return ahead
        if ahead is not None:
            await ahead.scheduler.close_rpc()
        greeted = await _greet(connection)
        if greeted is None:
            raise ConnectionError(f"nothing answers at {connection.scheduler_address}")
        return greeted


async def _greet(connection: ConnectionView) -> Greeted | None:
    security = ClaimSecurity(connection)
    arguments = security.get_connection_args("client")
    scheduler = rpc(connection.scheduler_address, connection_args=arguments)
    try:
        # Two at once: the cluster will want two connections, and a handshake takes its time.
        *_, modules = await asyncio.gather(
            scheduler.identity(), scheduler.identity(), asyncio.to_thread(modules_beside)
        )
        if modules is not None:
            # Before any task can be sent, and mostly before the workers are there.
            await _share(scheduler, modules)
    except OSError:
        await scheduler.close_rpc()
        return None
    return Greeted(security=security, scheduler=scheduler)


async def _share(scheduler: Any, modules: ModulesBeside) -> None:
    """Have the claim import what lies beside the notebook."""
    plugin = ModulesOnScheduler(modules)
    try:
        await scheduler.register_scheduler_plugin(
            plugin=dumps(plugin), name=plugin.name, idempotent=True
        )
    except Exception as error:  # noqa: BLE001 - Dask raises here whatever went wrong over there
        _log.warning("Modules in %s cannot be imported by this claim: %s", modules.folder, error)
