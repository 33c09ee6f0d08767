"""Where a pool's manager is, and what opens its door: found by `discovery`, used by `http`."""

from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from jupyter_gpupool.pool.errors import BadRequest


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

    Raises:
        BadRequest: If the URL is none, or would carry the token over a network in the clear.
    """

    url: str
    token: str = field(repr=False)
    source: Source = Source.ENVIRONMENT
    ca: str = ""
    manager_pid: int | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadRequest(
                f"{self.url!r} is not the URL of a pool's manager.",
                field="url",
                hint="Write for example https://gpupool.example.org:8787.",
            )
        if parts.scheme == "http" and not self.is_loopback:
            raise BadRequest(
                f"{self.url} would carry your token over the network in the clear.",
                field="url",
                hint="Use its https address.",
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
