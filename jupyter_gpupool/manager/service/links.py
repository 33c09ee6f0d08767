"""The agents that are connected, and handing each the newest `Desired`.

The API's link route registers a link; the service wakes it after a commit. A link that misses a
generation loses nothing: each one is whole.
"""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

from jupyter_gpupool.pool.ids import HostId


class Closing(StrEnum):
    """Why a link has to close."""

    REPLACED = "A newer agent of this host has taken over."
    VOID = "The token was revoked or has expired."
    ENDING = "The manager ends."


@dataclass(eq=False, slots=True, kw_only=True)
class Link:
    """One agent's connection.

    Attributes:
        changed: There is a newer `Desired`, or it has to close.
        closing: Why it has to close; None while it may stay.
    """

    host_id: HostId
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    closing: Closing | None = None

    def close(self, why: Closing) -> None:
        """Have the route hang up; the first reason stays."""
        self.closing = self.closing or why
        self.changed.set()


class Links:
    """At most one link a host: the newest."""

    def __init__(self) -> None:
        self._links: dict[HostId, Link] = {}
        self.heard_s: dict[HostId, float] = {}

    def open(self, link: Link) -> None:
        """A host's agent is here; an older link of it is closed."""
        before = self._links.get(link.host_id)
        if before is not None:
            before.close(Closing.REPLACED)
        self._links[link.host_id] = link

    def drop(self, link: Link) -> bool:
        """The link is gone; False if a newer one has taken its place."""
        if self._links.get(link.host_id) is not link:
            return False
        del self._links[link.host_id]
        return True

    def wake(self, host_id: HostId) -> None:
        """There is something newer to tell this host."""
        link = self._links.get(host_id)
        if link is not None:
            link.changed.set()

    def close_all(self) -> None:
        """The manager ends."""
        for link in self._links.values():
            link.close(Closing.ENDING)
