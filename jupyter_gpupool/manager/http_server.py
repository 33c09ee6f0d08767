"""The socket and the HTTP server on it.

The socket is bound before anything else is opened, so that a port in use costs one sentence.
"""

import asyncio
import contextlib
import ipaddress
import logging
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from jupyter_gpupool.pool.errors import BadRequest, Unavailable

from .listening import listen
from .prompt_http import PromptHttp
from .to_serve import Tls

_LOG = logging.getLogger(__name__)
_GRACE_S = 3


class _Server(uvicorn.Server):
    """uvicorn without its own signals and without waking ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours."""
        yield

    async def main_loop(self) -> None:
        """Wait for the end; the server listens by now."""
        self.listening.set()
        await self.stopping.wait()


class HttpServer:
    """One listening socket; serves an application between `start` and `stop`."""

    def __init__(self, listening: socket.socket, tls: Tls | None) -> None:
        self._socket = listening
        self._tls = tls
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self.port: int = listening.getsockname()[1]

    @classmethod
    def bind(cls, ip: str, port: int, tls: Tls | None) -> "HttpServer":
        """Take the port.

        Raises:
            BadRequest: If this address may not be listened on so.
            Unavailable: If the port is in use or not allowed.
        """
        check_address(ip, tls)
        try:
            return cls(listen(ip, port), tls)
        except OSError as error:
            raise Unavailable(
                f"The manager cannot listen on {ip} port {port}: {error.strerror}.",
                hint="Stop what uses it, or choose another port with --port.",
            ) from error

    @property
    def url(self) -> str:
        """Where clients reach it."""
        ip = self._socket.getsockname()[0]
        host = f"[{ip}]" if ":" in ip else ip
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    async def start(self, app: ASGIApp) -> None:
        """Serve, and return once requests are answered."""
        config = uvicorn.Config(
            app,
            http=PromptHttp,
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_GRACE_S,
            ssl_certfile=self._tls.certfile if self._tls else None,
            ssl_keyfile=self._tls.keyfile if self._tls else None,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve([self._socket]), name="gpupool-http")
        listening = asyncio.ensure_future(self._server.listening.wait())
        await asyncio.wait((listening, self._task), return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()

    async def ended(self) -> None:
        """Wait until it stops serving by itself, which is for ever unless there is a defect."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def stop(self) -> None:
        """Answer what was asked, then hang up."""
        if self._server is not None and self._task is not None:
            self._server.stopping.set()
            await asyncio.wait((self._task,))
            # It stumbles over a WebSocket that its peer closes at this very moment; the process
            # ends, and with it every connection.
            if self._task.exception() is not None:
                _LOG.info("Hanging up was cut short", exc_info=self._task.exception())

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()


def check_address(ip: str, tls: Tls | None) -> None:
    """Refuse to send tokens over a network in the clear.

    Raises:
        BadRequest: If the address is none, is open to others without TLS, or TLS cannot work.
    """
    try:
        is_loopback = ipaddress.ip_address(ip).is_loopback
    except ValueError as error:
        raise BadRequest(
            f"{ip!r} is no IP address to listen on.", field="ip", hint="Use 127.0.0.1 or 0.0.0.0."
        ) from error
    if tls is None and not is_loopback:
        raise BadRequest(
            f"The manager does not listen on {ip} without TLS.",
            field="certfile",
            hint="Give --certfile and --keyfile, or listen on 127.0.0.1.",
        )
    if tls is not None:
        _check_tls(tls)


def _check_tls(tls: Tls) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certfile, tls.keyfile)
    except (OSError, ssl.SSLError) as error:
        raise BadRequest(
            f"The certificate {tls.certfile} with the key {tls.keyfile} cannot be used:"
            f" {error.strerror or error}.",
            field="certfile",
            hint="Give PEM files that belong together and that the manager may read.",
        ) from error
