"""The agents that are connected, and handing each the newest `Desired`.

The API's link route registers a link; the service wakes it after a commit. A link that misses a
generation loses nothing: each one is whole. Questions to the agent go the same way.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from jupyter_gpupool.pool.ids import ClaimId, HostId

from .questions import Logs, Questions

_SOON_S = 60.0
_OFTEN = 2


class Closing(StrEnum):
    """Why a link has to close."""

    REPLACED = "A newer agent of this host has taken over."
    VOID = "The token was revoked or has expired."
    ENDING = "The manager ends."


@dataclass(eq=False, slots=True, kw_only=True)
class Link:
    """One agent's connection.

    Attributes:
        peer: Name and address that the agent gave itself.
        changed: There is a newer `Desired` or a question, or it has to close.
        closing: Why it has to close; None while it may stay.
        questions: What the agent is being asked.
        look: It has to report now.
        made_so: The generation of its last report: the newest `Desired` that it has taken in.
    """

    host_id: HostId
    peer: tuple[str, str]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    closing: Closing | None = None
    questions: Questions = field(default_factory=Questions)
    look: bool = False
    made_so: int = 0

    def ask(self, claim_id: ClaimId, processes: Sequence[str], lines: int) -> asyncio.Future[Logs]:
        """Ask the agent for the last lines of these processes of a claim."""
        answer = self.questions.ask(claim_id, processes, lines)
        self.changed.set()
        return answer

    def close(self, why: Closing) -> None:
        """Have the route hang up; the first reason stays."""
        self.closing = self.closing or why
        self.changed.set()


class Links:
    """At most one link a host: the newest."""

    def __init__(self) -> None:
        self._links: dict[HostId, Link] = {}
        self._replaced_s: dict[HostId, tuple[float, ...]] = {}
        self.heard_s: dict[HostId, float] = {}

    def open(self, link: Link, now_s: float) -> None:
        """A host's agent is here; an older link of it is closed."""
        before = self._links.get(link.host_id)
        if before is not None:
            before.close(Closing.REPLACED)
            recent = self._replaced_s.get(link.host_id, ())[1 - _OFTEN :]
            self._replaced_s[link.host_id] = (*recent, now_s)
        self._links[link.host_id] = link

    def other(self, host_id: HostId, peer: tuple[str, str]) -> Link | None:
        """The open link of this host, if its agent calls itself otherwise."""
        found = self._links.get(host_id)
        return found if found is not None and found.peer != peer else None

    def find(self, host_id: HostId) -> Link | None:
        """The host's link, if its agent is connected."""
        return self._links.get(host_id)

    def is_open(self, host_id: HostId) -> bool:
        """Whether the host's agent is connected."""
        return host_id in self._links

    def contested(self, host_id: HostId, now_s: float) -> str:
        """A sentence if agents drive each other from this host's link, else ""."""
        times = self._replaced_s.get(host_id, ())
        if len(times) < _OFTEN or now_s - times[0] > _SOON_S:
            return ""
        return "Two agents join as this host in turns; was its state folder copied?"

    def forget(self, host_id: HostId) -> None:
        """This host is no longer known."""
        self.heard_s.pop(host_id, None)
        self._replaced_s.pop(host_id, None)

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

    def look(self, host_id: HostId) -> None:
        """Have this host report now."""
        link = self._links.get(host_id)
        if link is not None:
            link.look = True
            link.changed.set()

    def close_all(self) -> None:
        """The manager ends."""
        for link in self._links.values():
            link.close(Closing.ENDING)
