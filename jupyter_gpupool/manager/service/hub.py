"""Telling people what happened: the last events, and everybody who listens.

Written by the service after each commit; read by the API's event stream. A listener that cannot
keep up is dropped, and resumes from the last position it saw.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from jupyter_gpupool.pool.event import Event

_KEPT = 2000
_MOST_WAITING = 1000


@dataclass(eq=False, slots=True, kw_only=True)
class Listener:
    """One who listens: gets the events it wishes for, until it falls behind.

    Attributes:
        behind: It missed events and gets no more.
    """

    wishes: Callable[[Event], bool]
    waiting: deque[Event] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    behind: bool = False

    async def next_events(self) -> list[Event]:
        """Wait for events; an empty list means that it fell behind."""
        await self.arrived.wait()
        self.arrived.clear()
        events = [] if self.behind else list(self.waiting)
        self.waiting.clear()
        return events

    def tell(self, event: Event) -> None:
        """Hand over an event without ever waiting."""
        if self.behind or not self.wishes(event):
            return
        self.behind = len(self.waiting) >= _MOST_WAITING
        self.waiting.append(event)
        self.arrived.set()


class Hub:
    """The last events in memory, and the listeners."""

    def __init__(self) -> None:
        self._last: deque[Event] = deque(maxlen=_KEPT)
        self.listeners: set[Listener] = set()

    def fill(self, events: Iterable[Event]) -> None:
        """Start from what was stored."""
        self._last.extend(events)

    def publish(self, events: Iterable[Event]) -> None:
        """Tell everybody, in order."""
        for event in events:
            self._last.append(event)
            for listener in self.listeners:
                listener.tell(event)

    def since(self, after: int) -> list[Event] | None:
        """All events after a position, or None if memory does not reach back so far."""
        if not self._last or after < self._last[0].seq - 1:
            return None
        return [event for event in self._last if event.seq > after]
