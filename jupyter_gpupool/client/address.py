"""Where a pool's manager is, and what opens its door: found by `discovery`, used by `http`."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from jupyter_gpupool.pool.errors import BadRequest

_TOKEN = re.compile(r"[!-~]+")
_URL = re.compile(r"[!-~]+")
"""Visible ASCII: what else there is could not be sent, or would be shown in an error."""


class Source(StrEnum):
    """Where the address was found."""

    ENVIRONMENT = "environment"
    RUNTIME_FILE = "runtime file"
    """The user's own embedded pool, which may be started again when it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolAddress:
    """A manager's URL with a token for it.

    Attributes:
        ca: Path of a private authority's certificates; "" trusts the system's.
        manager_pid: The embedded manager's process, else None.
        manager_started: When that process started, which tells it from a later one of its number.

    Raises:
        BadRequest: If the URL is none, or would carry the token over a network in the clear, or
            the token cannot stand in a header.
    """

    url: str
    token: str = field(repr=False)
    source: Source = Source.ENVIRONMENT
    ca: str = ""
    manager_pid: int | None = None
    manager_started: int | None = None

    def __post_init__(self) -> None:
        parts = _parts(self.url)
        if parts is None:
            raise BadRequest(
                f"{self.url[:200]!r} is not the URL of a pool's manager.",
                field="url",
                hint="Write for example https://gpupool.example.org:8787.",
            )
        if parts.scheme == "http" and not self.is_loopback:
            raise BadRequest(
                f"{self.url} would carry your token over the network in the clear.",
                field="url",
                hint="Use its https address.",
            )
        if not _TOKEN.fullmatch(self.token):
            raise BadRequest(
                "What is given as the pool's token is none: it holds more than visible ASCII.",
                field="token",
                hint="Copy it again, without quotes and line breaks.",
            )

    @property
    def is_loopback(self) -> bool:
        """Whether the manager is on this machine, as far as its name tells."""
        host = urlsplit(self.url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def base(self) -> str:
        """The URL without a trailing slash."""
        return self.url.rstrip("/")

    @property
    def websocket_base(self) -> str:
        """The same for WebSockets: ws for http, wss for https."""
        return "ws" + self.base.removeprefix("http")


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL that can be used, else None."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of a port or an IPv6 address that is none
        return None
    return parts if is_one and _URL.fullmatch(url) else None
