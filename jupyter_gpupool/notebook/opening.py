"""From a request to a running claim: asks, waits with place and reason, and gives up cleanly.

Lives on the background loop; `cluster` runs it from whatever thread or loop its user has.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from jupyter_gpupool.client.background import Say
from jupyter_gpupool.client.errors import Unanswered
from jupyter_gpupool.client.events import Notice, StreamState
from jupyter_gpupool.client.http import new_key
from jupyter_gpupool.client.pools import Pool, current_pool
from jupyter_gpupool.pool.claim import OVER, WAITING, Phase
from jupyter_gpupool.pool.errors import ClaimLost, PoolError, Unavailable
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.api import ClaimBody, ClaimView, ConnectionView, EventView

from .attachment import Attachment
from .giving_back import release_once_known
from .left_behind import first_look, left_behind_text
from .voice import Lasting
from .waiting import Waiting, why
from .which import find

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_GIVE_UP_WITHIN_S = 5.0
_LAST_LOOK_WITHIN_S = 1.0


class StillWaiting(Unavailable, TimeoutError):
    """The claim did not start in the time its user gave it; it has been given up."""

    reference: ClassVar[str] = "still-waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A claim that runs, and how its scheduler is reached."""

    view: ClaimView
    connection: ConnectionView


def lost(name: str, reason: str) -> ClaimLost:
    """The error for a claim that has ended by itself."""
    return ClaimLost(f"Claim {name} has ended: {reason}", hint="Claim again to go on.")


def _never_ran(name: str, reason: str) -> ClaimLost:
    return ClaimLost(
        f"Claim {name} has ended before it ran: {reason}",
        hint="Mend what it says, then claim again.",
    )


def too_late(view: ClaimView, timeout_s: float | None) -> StillWaiting:
    """The error for a claim that did not start in time; the view is of when it still waited."""
    within = format_duration(timeout_s or 0)
    return StillWaiting(
        f"Claim {view.name} did not start within {within} and has been given up. The last"
        f" that was heard of it: it {why(view).rstrip('.')}.",
        hint=_what_would_help(view),
    )


def _what_would_help(view: ClaimView) -> str:
    if view.wait is not None and view.wait.never:
        return "Ask for what the pool has: jupyter gpupool devices"
    return "Ask for fewer devices, or wait longer." if view.wait else "Wait longer."


class Opening:
    """One claim on its way to running: a new one, one that is known, or one to be found.

    Attributes:
        view: The claim as last seen; None before it is requested.
        reachable: Called once its scheduler listens, before its workers are there.
    """

    def __init__(
        self,
        pool: Pool | None,
        *,
        body: ClaimBody | None = None,
        view: ClaimView | None = None,
        name: str | None = None,
    ) -> None:
        given = (body is not None, view is not None, name is not None)
        assert sum(given) == 1, "either a new claim, or one that exists"
        self.view = view
        self.reachable: Callable[[ConnectionView], None] = _nobody
        self._pool = pool
        self._body = body
        self._name = name or ""
        self._key = new_key()
        self._connection: ConnectionView | None = None
        self._attachment: Attachment | None = None

    @property
    def pool(self) -> Pool:
        """The pool it is asked of."""
        assert self._pool is not None, "found before it is used"
        return self._pool

    @property
    def view_now(self) -> ClaimView:
        """The claim as last seen, once it is requested."""
        assert self.view is not None, "requested before"
        return self.view

    @property
    def name(self) -> str:
        """What to call the claim as far as is known."""
        return "claim" if self.view is None else self.view.name

    async def find_pool(self) -> None:
        """Find or start the pool if it was left open, off the caller's loop: it may take seconds.

        Raises:
            PoolError: If there is none and none can be started.
        """
        if self._pool is None:
            self._pool = await asyncio.to_thread(current_pool)

    async def request(self) -> ClaimView:
        """Ask for the claim; a second time, or after an interrupt, it is still the same one."""
        if self.view is None:
            asked = asyncio.create_task(self._ask())
            try:
                self.view = await asyncio.shield(asked)
            except asyncio.CancelledError:
                # The manager may have granted it already: only its answer tells what to undo.
                await self._undo(_after(asked, self._ask), "interrupted while it was requested")
                raise
            except Unanswered:
                if self._body is not None:
                    release_once_known(self.pool, self._ask, "its client had no answer")
                raise
        return self.view

    async def wait(self, say: Say, timeout_s: float | None = None) -> Opened:
        """Wait until the claim runs.

        Args:
            say: Told place and reason, once a change.
            timeout_s: After this time the claim is given up; None waits for ever.

        Raises:
            StillWaiting: If it does not run in time.
            ClaimLost: If it ends instead; the reason is in the message.
        """
        view = await self.request()
        look = first_look(self.pool)
        if look is not None:
            look.add_done_callback(partial(self._tell_left_behind, say))
        try:
            async with asyncio.timeout(timeout_s):
                opened = await self._until_running(Waiting(say))
                if look is not None:
                    await look
                return opened
        except TimeoutError:
            waited = await self._last_look(view)
            await self.give_up("not started in time")
            raise too_late(waited, timeout_s) from None
        except asyncio.CancelledError:
            await self.give_up("interrupted while it waited")
            raise

    def _tell_left_behind(self, say: Say, look: "asyncio.Task[Sequence[ClaimView]]") -> None:
        if not look.cancelled() and self.view is not None:
            others = [view for view in look.result() if view.id != self.view.id]
            for line in left_behind_text(others):
                say(Lasting(line))

    def attach(self) -> None:
        """Tell the pool that this kernel uses the claim; on the background loop."""
        if self._attachment is None and self.view is not None:
            self._attachment = Attachment(self.pool, self.view.id)
            self._attachment.begin()

    async def detach(self) -> None:
        """Tell the pool that it does so no more; on the background loop."""
        if self._attachment is not None:
            await self._attachment.end()

    async def _last_look(self, requested: ClaimView) -> ClaimView:
        """The claim while it still waits: given up, it has no place and no reason to wait."""
        view = self.view or requested
        if view.phase is Phase.PENDING and view.wait is None:
            with contextlib.suppress(PoolError, TimeoutError):
                async with asyncio.timeout(_LAST_LOOK_WITHIN_S):
                    view = await self.pool.client.claim(view.id, patience_s=0)
        return view

    async def give_up(self, reason: str) -> None:
        """Release what this opening asked for, if it is not over; a claim found stays as it is.

        A manager that does not answer soon is told in the background, once it does.
        """
        view = self.view
        if self._body is None:
            await self.detach()
        elif view is not None and view.phase not in OVER:
            await self._undo(_known(view), reason)

    async def _undo(self, ask: "Callable[[], Awaitable[ClaimView]]", reason: str) -> None:
        if self._body is None:
            return
        release = release_once_known(self.pool, ask, reason)
        await asyncio.wait([release], timeout=_GIVE_UP_WITHIN_S)
        if release.done():
            self.view = release.result() or self.view

    async def _ask(self) -> ClaimView:
        if self._body is None:
            return await find(self.pool.client, self._name)
        return await self.pool.client.request_claim(self._body, key=self._key)

    async def _until_running(self, waiting: "Waiting") -> Opened:
        view = await self.request()
        async with self.pool.events.watch(view.id, after=view.seq) as watch:
            if view.scheduler_address is not None:
                await self._look_for_scheduler()
            while (opened := await self._opened()) is None:
                notice = await watch.next(within_s=waiting.speak_in_s())
                await self._hear(notice, waiting)
            return opened

    async def _opened(self) -> Opened | None:
        if self.view_now.phase in OVER:
            ended = _never_ran if self.view_now.started_at is None else lost
            raise ended(self.view_now.name, self.view_now.reason)
        if self.view_now.phase not in _REACHABLE:
            return None
        if self._connection is None or self._connection.scheduler_address is None:
            self._connection = await self.pool.client.connection(self.view_now.id)
        if self._connection.scheduler_address is None:
            return None
        self.attach()
        return Opened(view=self.view_now, connection=self._connection)

    async def _hear(self, notice: Notice | None, waiting: "Waiting") -> None:
        if isinstance(notice, EventView):
            await self._happened(notice)
        elif notice is StreamState.SILENT:
            waiting.manager_silent()
        else:
            with contextlib.suppress(Unavailable):
                self.view = await self.pool.client.claim(self.view_now.id, patience_s=0)
                await self._look_for_scheduler()
            if notice is None:
                # It takes long: should this kernel end meanwhile, its claim can be told as left.
                self.attach()
                waiting.speak(self.view_now)

    async def _happened(self, event: EventView) -> None:
        phase = _PHASES.get(event.kind, self.view_now.phase)
        update = {"phase": phase, "reason": event.reason, "seq": event.seq}
        self.view = self.view_now.model_copy(update=update)
        if phase in WAITING:
            self._connection = None
        await self._look_for_scheduler()

    async def _look_for_scheduler(self) -> None:
        """Fetch the credentials while the workers start: by the time they run, we are ready."""
        known = self._connection is not None and self._connection.scheduler_address is not None
        if known or self.view_now.phase is not Phase.STARTING:
            return
        with contextlib.suppress(PoolError):
            self._connection = await self.pool.client.connection(self.view_now.id)
            if self._connection.scheduler_address is not None:
                self.reachable(self._connection)


_REACHABLE = (Phase.RUNNING, Phase.HIBERNATED)
"""Its scheduler is there, and tasks may be submitted: those of a claim that hibernates wake it."""
_PHASES = {EventKind(f"claim.{phase}"): phase for phase in Phase}


def _after(
    asked: "asyncio.Task[ClaimView]", again: "Callable[[], Awaitable[ClaimView]]"
) -> "Callable[[], Awaitable[ClaimView]]":
    """The answer under way; once that has come to nothing, another try."""

    async def ask() -> ClaimView:
        return await (again() if asked.done() and asked.exception() else asked)

    return ask


def _known(view: ClaimView) -> "Callable[[], Awaitable[ClaimView]]":
    async def ask() -> ClaimView:
        return view

    return ask


def _nobody(_connection: ConnectionView) -> None:
    """Nobody wants to know."""
