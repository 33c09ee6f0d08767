"""The agent's end of the link to the manager: a WebSocket it opens, again and again if need be.

Run by `app`. Reports go out on every change, those of one turn of the loop together, and every ten
seconds as a sign of life. While the manager is away the host keeps what it was last told.
"""

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit, urlunsplit

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotAuthenticated
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.link import (
    Desired,
    HostReport,
    Joined,
    LogQuery,
    LookNow,
    Refused,
    ToAgent,
)

from .host import HostAgent
from .host_facts import is_loopback
from .resting import rest_after
from .sendable import sendable_report, short_report

logger = logging.getLogger(__name__)

PATH = "/api/v1/agents/link"
SIGN_OF_LIFE_S = 10.0
ORPHAN_AFTER_S = 3600.0
_NEXT_REPORT_S = 0.01
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
_OPEN_WITHIN_S = 10.0
_PING_EVERY_S = 10.0
_LARGEST_MESSAGE_BYTES = 64 * 2**20
_LARGEST_REPORT_BYTES = 12 * 2**20
"""The manager's server takes messages of 16 MiB, and hangs up on a larger one."""
_TOLERATED_SKEW_S = 60.0
_SCHEMES = {"http": "ws", "https": "wss"}
_NOT_ADMITTED = frozenset({401, 403})


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTarget:
    """Where the manager is and how to be let in.

    Attributes:
        url: As people write it: http or https.
        ca_file: A private authority's certificate; "" is the system's.
    """

    url: str
    token: str = field(repr=False)
    ca_file: str = ""


class Link:
    """Keeps the manager and the host in touch.

    Attributes:
        has_joined: Whether the manager has ever let this agent in.
    """

    def __init__(
        self,
        target: LinkTarget,
        host: HostAgent,
        *,
        orphan_after_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._host = host
        self._fixed_orphan_after_s = orphan_after_s
        self._orphan_after_s = orphan_after_s or ORPHAN_AFTER_S
        self._clock = clock
        self._heard_at_s = clock()
        self._pause_s = _FIRST_PAUSE_S
        self._is_in_touch = False
        self.has_joined = False

    async def run(self) -> None:
        """Stay in touch; returns when the manager has been away for too long.

        Raises:
            NotAuthenticated, Conflict: If the manager does not let the agent in at all.
            BadRequest: If its authority's certificate cannot be read.
        """
        url, tls = link_url(self._target.url), self._tls()
        while True:
            try:
                await self._hold_connection(url, tls)
            except InvalidStatus as error:
                self._check_admitted(error)
                logger.warning("The manager answers %d.", error.response.status_code)
            except (OSError, TimeoutError, WebSocketException) as error:
                logger.warning("No link to %s: %s", self._target.url, _one_line(error))
            # After a try: an agent that was stopped for long has to look before it judges.
            if self._clock() - self._heard_at_s >= self._orphan_after_s:
                break
            await asyncio.sleep(self._next_pause_s())
        logger.warning("The manager has been away for %.0f s.", self._orphan_after_s)

    async def _hold_connection(self, url: str, tls: ssl.SSLContext | None) -> None:
        is_here = is_loopback(urlsplit(url).hostname or "")
        connection = connect(
            url,
            additional_headers={"Authorization": f"Bearer {self._target.token}"},
            ssl=tls,
            open_timeout=_OPEN_WITHIN_S,
            ping_interval=_PING_EVERY_S,
            ping_timeout=_PING_EVERY_S,
            close_timeout=1,
            max_size=_LARGEST_MESSAGE_BYTES,
            compression=None,
            proxy=None if is_here else True,
        )
        async with connection as socket:
            self._is_in_touch = False
            self._host.begin_connection()
            self._host.news.set()
            try:
                await _until_one_ends(self._speak(socket), self._listen(socket))
            finally:
                if self._is_in_touch:
                    # A manager with nothing to say is not away: that counts from here on.
                    self._heard_at_s = self._clock()

    async def _speak(self, socket: ClientConnection) -> None:
        news, next_s = self._host.news, 0.0
        while True:
            try:
                # Not `wait_for`: before Python 3.12 it loses a cancellation that comes with news,
                # and the link would neither end nor be made anew.
                async with asyncio.timeout(SIGN_OF_LIFE_S):
                    await news.wait()
            except TimeoutError:
                logger.debug("Nothing new; a sign of life.")
            # Whatever else happens in this turn of the loop goes into the same report; after a
            # report, whatever happens in the next moment: each one costs the manager a look.
            await asyncio.sleep(max(0.0, next_s - time.monotonic()))
            news.clear()
            began_s = time.monotonic()
            try:
                await socket.send(_encoded(self._host.report()))
            except ConnectionClosed:
                return
            ended_s = time.monotonic()
            next_s = max(began_s + _NEXT_REPORT_S, ended_s + rest_after(ended_s - began_s))

    async def _listen(self, socket: ClientConnection) -> None:
        async for text in socket:
            try:
                message = ToAgent.validate_json(text)
            except ValidationError as error:
                # Without its text: that may hold a claim's secrets.
                logger.error("A message of the manager makes no sense: %s", _places(error))  # noqa: TRY400
                continue
            if isinstance(message, LogQuery):
                await socket.send((await self._host.logs(message)).model_dump_json())
            else:
                self._take(message)

    def _take(self, message: Desired | Joined | Refused | LookNow) -> None:
        match message:
            case Desired():
                self._host.desire(message)
            case LookNow():
                self._host.look_now()
            case Joined():
                self._take_joined(message)
            case Refused(reason=reason, hint=hint) if not self.has_joined:
                raise Conflict(f"The manager refuses this host: {reason}", hint=hint)
            case Refused(reason=reason):
                logger.error("The manager refuses this host: %s", reason)

    def _take_joined(self, joined: Joined) -> None:
        self.has_joined, self._is_in_touch, self._pause_s = True, True, _FIRST_PAUSE_S
        self._orphan_after_s = self._fixed_orphan_after_s or joined.orphan_after_s
        skew_s = (datetime.now(UTC) - joined.manager_time).total_seconds()
        self._host.clock_problem = clock_problem(skew_s)
        self._host.news.set()
        logger.info("Joined the pool at %s as %s.", self._target.url, joined.host_id)

    def _check_admitted(self, error: InvalidStatus) -> None:
        if error.response.status_code in _NOT_ADMITTED and not self.has_joined:
            raise NotAuthenticated(
                f"The manager at {self._target.url} does not accept this agent's token.",
                hint="Make one with: jupyter gpupool token create --role agent",
            ) from error

    def _next_pause_s(self) -> float:
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        # Agents that lost one manager together should not all come back together.
        return pause_s * random.uniform(0.5, 1.0)  # noqa: S311 - no secret hangs on it

    def _tls(self) -> ssl.SSLContext | None:
        if urlsplit(self._target.url).scheme != "https":
            return None
        try:
            return ssl.create_default_context(cafile=self._target.ca_file or None)
        except OSError as error:
            raise BadRequest(
                f"The CA file {self._target.ca_file} cannot be read: {_one_line(error)}.",
                field="ca_file",
                hint="Give the PEM file of the authority that signed the manager's certificate.",
            ) from error


async def _until_one_ends(*ways: Coroutine[None, None, None]) -> None:
    """Both ways of a connection end together; what broke the first one is raised."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _encoded(report: HostReport) -> str:
    """The report as JSON; neither a bad text in it nor many long ones must silence the host."""
    try:
        text = report.model_dump_json()
    except ValueError as error:
        logger.error("A text in the report cannot be sent as it is: %s", _one_line(error))  # noqa: TRY400 - the text is a user's
        report = sendable_report(report)
        text = report.model_dump_json()
    if len(text.encode()) <= _LARGEST_REPORT_BYTES:
        return text
    logger.error("The report has %d bytes; it is sent without most details.", len(text.encode()))
    return short_report(report).model_dump_json()


def check_url(manager_url: str, *, allow_plain_http: bool = False) -> None:
    """See that it can be the address of a manager.

    Raises:
        BadRequest: If it is no http or https address, or the token would go there in the open.
    """
    parts = urlsplit(manager_url)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise BadRequest(
            f"{manager_url!r} is not the address of a manager.",
            field="join_url",
            hint="Write for example --join https://pool.example.org:8780",
        )
    if parts.scheme == "http" and not allow_plain_http and not is_loopback(parts.hostname):
        raise BadRequest(
            f"The link to {parts.hostname} would carry tokens and keys unencrypted.",
            field="join_url",
            hint="Use https; or, on a network that nobody else can listen on, --allow-plain-http.",
        )


def link_url(manager_url: str) -> str:
    """The WebSocket's address, from the manager's."""
    parts = urlsplit(manager_url)
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, parts.path.rstrip("/") + PATH, "", ""))


def clock_problem(skew_s: float) -> str:
    """One sentence if this host's clock is off, else "". Positive is ahead of the manager."""
    if abs(skew_s) <= _TOLERATED_SKEW_S:
        return ""
    direction = "ahead of" if skew_s > 0 else "behind"
    return f"This host's clock is {format_duration(abs(skew_s))} {direction} the manager's clock."


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _places(error: ValidationError) -> str:
    return ", ".join(
        f"{'.'.join(map(str, item['loc']))}: {item['type']}"
        for item in error.errors(include_input=False, include_url=False)
    )
