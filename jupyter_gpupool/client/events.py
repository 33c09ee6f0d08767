"""One event stream a manager: a WebSocket that resumes where it broke, shared by all who watch.

Lives on the background loop. `notebook` watches its claims through it, `cli` follows it.
"""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from jupyter_gpupool.pool.errors import NotAllowed, PoolError
from jupyter_gpupool.protocol.api import API, EventView, StreamGap

from .address import PoolAddress
from .errors import token_refused
from .http import tls_context

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_WELL_AFTER_S = 5.0
"""A connection that lasted this long was no mistake."""
_LINGER_S = 10.0
"""The next claim often follows soon; without one, a stream would keep its manager in use."""
_HANDSHAKE_WITHIN_S = 10.0
_RECENT = 512
_LINE: TypeAdapter[EventView | StreamGap] = TypeAdapter(EventView | StreamGap)


class StreamState(StrEnum):
    """What a watcher is told besides events."""

    LIVE = "live"
    """The stream runs, and may have missed something before: load the state anew."""
    SILENT = "silent"
    """The manager does not answer; the stream goes on trying."""


Notice = EventView | StreamState | PoolError
"""What a watcher hears. A PoolError is the last: the stream cannot go on."""


class Watch:
    """What one watcher hears, in order."""

    def __init__(self, claim_id: str | None) -> None:
        self._claim_id = claim_id
        self._notices: asyncio.Queue[Notice] = asyncio.Queue()

    def hear(self, notice: Notice) -> None:
        """Keep a notice if it concerns this watcher."""
        if isinstance(notice, EventView) and self._claim_id not in (None, notice.claim_id):
            return
        self._notices.put_nowait(notice)

    async def next(self, *, within_s: float | None = None) -> Notice | None:
        """The next notice, or None if there is none in time.

        Raises:
            PoolError: If the stream cannot go on.
        """
        try:
            async with asyncio.timeout(within_s):
                notice = await self._notices.get()
        except TimeoutError:
            return None
        if isinstance(notice, PoolError):
            self._notices.put_nowait(notice)
            raise notice
        return notice


class EventStream:
    """Follows the manager's events from the first watch on, until some seconds after the last."""

    def __init__(self, address: PoolAddress, *, linger_s: float = _LINGER_S) -> None:
        self._address = address
        self._linger_s = linger_s
        self._rest: asyncio.TimerHandle | None = None
        self._resting: set[asyncio.Task[None]] = set()
        self._watches: set[Watch] = set()
        self._after: int | None = None
        self._task: asyncio.Task[None] | None = None
        self._state: StreamState | PoolError | None = None
        self._recent: deque[EventView] = deque(maxlen=_RECENT)
        self._complete_after: int | None = None

    @contextlib.asynccontextmanager
    async def watch(
        self, claim_id: str | None = None, *, after: int | None
    ) -> AsyncIterator[Watch]:
        """Hear of one claim, or of everything.

        Args:
            claim_id: The claim; None is everything.
            after: Sequence number from which a stream that does not run yet starts; None is now.
        """
        watch = Watch(claim_id)
        self._watches.add(watch)
        self._run(after)
        self._catch_up(watch, after)
        try:
            yield watch
        finally:
            self._watches.discard(watch)
            self._rest_later()

    @property
    def is_running(self) -> bool:
        """Whether it follows, or tries to."""
        return self._task is not None and not self._task.done()

    async def close(self) -> None:
        """Stop following."""
        self._stop()
        if self._resting:
            await asyncio.wait(self._resting)

    def _rest_later(self) -> None:
        if not self._watches:
            self._stay()
            self._rest = asyncio.get_running_loop().call_later(self._linger_s, self._stop)

    def _stay(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _stop(self) -> None:
        self._stay()
        if self._task is not None:
            self._task.cancel()
            # It says good-bye in its own time; a new watch need not wait for that.
            self._resting.add(self._task)
            self._task.add_done_callback(self._resting.discard)
            self._task = None

    def _run(self, after: int | None) -> None:
        self._stay()
        if self._task is None or self._task.done():
            self._after, self._state = after, None
            self._recent.clear()
            self._complete_after = after
            self._task = asyncio.create_task(self._follow(), name="gpupool events")

    def _catch_up(self, watch: Watch, after: int | None) -> None:
        """Tell a new watch what the stream has heard beyond `after` before it was there."""
        if self._state is None or after is None:
            return
        if self._state is not StreamState.LIVE:
            watch.hear(self._state)
        elif self._complete_after is None or after < self._complete_after:
            watch.hear(StreamState.LIVE)
        else:
            for event in self._recent:
                if event.seq > after:
                    watch.hear(event)

    async def _follow(self) -> None:
        loop, pause_s = asyncio.get_running_loop(), _FIRST_PAUSE_S
        while True:
            began_s = loop.time()
            try:
                async with asyncio.timeout(_HANDSHAKE_WITHIN_S):
                    socket = await self._connect()
            except PoolError as error:
                self._turn(error)
                return
            except OSError:  # TimeoutError is one
                self._turn(StreamState.SILENT)
            else:
                self._connected()
                await self._listen(socket)
                if loop.time() - began_s > _WELL_AFTER_S:
                    pause_s = _FIRST_PAUSE_S
            # Apart from each other, so that a manager that comes back is not overrun. Also after
            # a connection that was taken and closed: that may go on for as long as we ask.
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - no secret
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _connect(self) -> "ClientConnection":
        from websockets.asyncio.client import connect  # noqa: PLC0415 - 0.1 s of import
        from websockets.exceptions import InvalidStatus, WebSocketException  # noqa: PLC0415

        after = "" if self._after is None else f"?after={self._after}"
        secure = self._address.base.startswith("https")
        try:
            return await connect(
                f"{self._address.websocket_base}{API}/events/stream{after}",
                additional_headers={"Authorization": f"Bearer {self._address.token}"},
                ssl=tls_context(self._address) if secure else None,
                proxy=None if self._address.is_loopback else True,
                open_timeout=None,
            )
        except InvalidStatus as error:
            raise _refusal(error.response.status_code) from error
        except WebSocketException as error:
            raise OSError(str(error)) from error

    async def _listen(self, socket: "ClientConnection") -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - see above

        async with socket:
            with contextlib.suppress(ConnectionClosed):
                while True:
                    for line in _text(await socket.recv()).splitlines():
                        self._heard(line)

    def _heard(self, line: str) -> None:
        try:
            said = _LINE.validate_json(line)
        except ValidationError:
            # A kind of event that a newer manager knows: its state can still be asked for.
            self._tell(StreamState.LIVE)
            return
        if isinstance(said, StreamGap):
            self._complete_after = self._after = None
            self._tell(StreamState.LIVE)
            return
        self._keep(said)
        self._tell(said)

    def _keep(self, event: EventView) -> None:
        if len(self._recent) == self._recent.maxlen:
            self._complete_after = self._recent[0].seq
        self._recent.append(event)
        self._after = max(event.seq, self._after or 0)

    def _connected(self) -> None:
        """A first connection starts where it was asked to; a later one may have missed things."""
        if self._state is None:
            self._state = StreamState.LIVE
        else:
            self._turn(StreamState.LIVE)

    def _turn(self, state: StreamState | PoolError) -> None:
        if state is StreamState.SILENT and self._state is StreamState.SILENT:
            return
        self._state = state
        self._tell(state)

    def _tell(self, notice: Notice) -> None:
        for watch in tuple(self._watches):
            watch.hear(notice)


def _text(message: str | bytes) -> str:
    return message if isinstance(message, str) else message.decode(errors="replace")


def _refusal(status: int) -> Exception:
    refusals: dict[int, Callable[[], PoolError]] = {
        HTTPStatus.UNAUTHORIZED: token_refused,
        HTTPStatus.FORBIDDEN: lambda: NotAllowed("This token may not follow the pool's events."),
    }
    make = refusals.get(status)
    return make() if make else OSError(f"status {status}")
