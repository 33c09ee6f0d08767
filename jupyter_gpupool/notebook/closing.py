"""How a cluster is closed: once, whoever asks, however often, and also when one of them gives up.

Part of `cluster`. What is under way goes on when its caller is interrupted; a second call waits for
the rest of it.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import asyncio
import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any, ClassVar

from distributed.core import Status
from distributed.deploy.cluster import Cluster
from distributed.utils import NoOpAwaitable

from jupyter_gpupool.pool.errors import Conflict, PoolError, Unavailable
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.api import ClaimView

from .clients import end_clients
from .giving_back import give_back, give_back_now

if TYPE_CHECKING:
    from .following import Following
    from .opening import Opening
    from .voice import Voice

_HANG_UP_WITHIN_S = 3.0
_WARM_WITHIN_S = 0.5


class StillClosing(Unavailable, TimeoutError):
    """It did not close in the time its user gave it; what is under way goes on."""

    reference: ClassVar[str] = "still-closing"


class Closing(Cluster):
    """A cluster whose end gives its claim back.

    Attributes:
        release_on_close: Whether `close` gives the claim back.
    """

    release_on_close: bool
    pool: Any
    _opening: "Opening"
    _following: "Following | None"
    _voice: "Voice"
    _warming: asyncio.Future[None] | None
    _arrivals: Any
    _finalizer: Any

    def _prepare_closing(self) -> None:
        self._made_by = os.getpid()
        self._is_hung_up = asyncio.Event()
        self._owes_release = False
        self._closing: asyncio.Future[None] | None = None
        # Two threads: whoever is first stops the loop that the other one would wait on.
        self._one_at_a_time = threading.RLock()

    def close(self, timeout: float | None = None) -> Any:
        """Give the claim back and close its clients; a second time does nothing.

        Raises:
            Unavailable: If the manager could not be told: then the claim may still run.
            StillClosing: If it is not done in time; call again to wait for the rest.
            Conflict: In a fork of the process that holds it.
        """
        if os.getpid() != self._made_by:
            raise Conflict(
                f"Claim {self.name} is held by process {self._made_by}, of which this is a fork.",
                hint="Close it there.",
            )
        if self.asynchronous:
            return NoOpAwaitable() if self._is_done() else self._close()
        with self._one_at_a_time:
            if self.status != Status.closed:
                self._close_blocking(timeout)
            elif self._owes_release:
                self._is_given_back(give_back_now(self.pool, self._opening.view_now))
        return None

    def _is_done(self) -> bool:
        return self.status == Status.closed and not self._owes_release

    def _close_blocking(self, timeout_s: float | None) -> None:
        try:
            self.sync(self._close, callback_timeout=timeout_s)
        except PoolError:
            self._loop_runner.stop()
            raise
        except BaseException as error:
            # Interrupted, or out of its time: the devices are worth one more moment.
            if self._owes_release:
                self._is_given_back(give_back_now(self.pool, self._opening.view_now))
            if timeout_s is not None and isinstance(error, TimeoutError):
                raise self._still_closing(timeout_s) from None
            raise
        self._loop_runner.stop()

    def _still_closing(self, timeout_s: float) -> StillClosing:
        return StillClosing(
            f"Claim {self.name} did not close within {format_duration(timeout_s)}; its connections"
            " still do.",
            hint="Close it again to wait for the rest.",
        )

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        try:
            self.close()
        except PoolError as error:
            if exc_type is None:
                raise
            # The error that is under way already matters more.
            self._voice.say(str(error))

    async def __aexit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        try:
            await self._close()
        except PoolError as error:
            if exc_type is None:
                raise
            self._voice.say(str(error))

    async def _close(self) -> None:
        if self.status == Status.closed and self._owes_release:
            await self._release()
        if self.status in (Status.closed, Status.failed):
            return
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close_once())
        await asyncio.shield(self._closing)

    async def _close_once(self) -> None:
        if self.status == Status.closing:
            # After a loss somebody else hangs up: a loop that ended meanwhile would cut that off.
            await self._is_hung_up.wait()
            return
        self.status = Status.closing
        self._owes_release = self.release_on_close and self._opening.view is not None
        release = asyncio.ensure_future(self._release())
        await self._hang_up()
        await release

    async def _release(self) -> None:
        if self._owes_release:
            self._is_given_back(await give_back(self.pool, self._opening.view_now))
        elif self._opening.view is not None:
            await self.pool.background.bridge(lambda _say: self._opening.detach())

    def _is_given_back(self, view: ClaimView) -> None:
        self._owes_release = False
        self._opening.view = view
        self._is_settled()

    async def _hang_up(self) -> None:
        """Close everything on our side, whatever state the other side is in."""
        if self._following is not None:
            self._following.stop()
            self._voice.follows_no_more(self._opening.view_now.id)
        if self._warming is not None:
            await asyncio.wait([self._warming], timeout=_WARM_WITHIN_S)
            self._warming.cancel()
        try:
            await end_clients(self)
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(_HANG_UP_WITHIN_S):
                    await super()._close()
        finally:
            # Whatever else went wrong, nobody shall wait for it.
            self.status = Status.closed
            self._is_hung_up.set()
            self._arrivals.tell()

    def _is_settled(self) -> None:
        if self._finalizer is not None:
            self._finalizer.detach()
