"""The claims that wait under least attained service, grouped by what they would meet.

Claims of one queue, level and shape wait first come, first served; if the first of them finds no
place, neither does the next. So a pass asks each group once, and not each of thousands of claims.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from .served import Served
from .shape import WorkerShape


class Likeness(NamedTuple):
    """What claims have in common that wait in one group.

    Attributes:
        grows: They have their minimum and would take more.
        needs: Workers.
        sharer: Who they share a device with, if they need only a part.
        thousandths: Of devices that each of them needs in all.
    """

    grows: bool
    level: int
    leaf: int
    needs: int
    worker: WorkerShape
    sharer: str
    thousandths: int


class Entry(NamedTuple):
    """A claim that waits in a group; void once its number is no longer the claim's newest."""

    urgency: int
    since_s: float
    claim_id: str
    number: int
    served: Served


@dataclass(slots=True, eq=False)
class Group:
    """Claims that would meet the same, in the order in which they are served."""

    likeness: Likeness
    entries: list[Entry] = field(default_factory=list)

    def first(self) -> Served | None:
        """The one to be served next, if anybody still waits here."""
        while self.entries:
            entry = self.entries[0]
            if entry.served.entry == entry.number:
                return entry.served
            heappop(self.entries)
        return None

    def waiting(self) -> Iterator[Entry]:
        """All who still wait here, in no order."""
        return (entry for entry in self.entries if entry.served.entry == entry.number)


class ServiceLine:
    """All groups in which anybody waits."""

    def __init__(self) -> None:
        self._groups: dict[Likeness, Group] = {}
        self._entries = 0

    def enter(self, served: Served) -> None:
        """Let a claim wait by what it needs now, if it needs anything; earlier entries are void."""
        self.leave(served)
        if not served.member.needs or served.member.promised:
            return
        likeness = _likeness(served)
        group = self._groups.get(likeness)
        if group is None:
            group = self._groups[likeness] = Group(likeness)
        view = served.member.view
        entry = Entry(-view.priority, view.since_s, view.id, served.entry, served)
        heappush(group.entries, entry)

    def leave(self, served: Served) -> None:
        """Let a claim wait no more."""
        self._entries += 1
        served.entry = self._entries

    def groups(self) -> Iterator[Group]:
        """Those in which anybody waits."""
        for likeness, group in list(self._groups.items()):
            if group.first() is None:
                del self._groups[likeness]
            else:
                yield group


def _likeness(served: Served) -> Likeness:
    member = served.member
    worker = member.view.worker
    grows = member.has >= member.view.minimum
    sharer = member.sharer if worker.share else ""
    needs = member.needs
    thousandths = needs * worker.thousandths
    return Likeness(grows, served.level, member.leaf, needs, worker, sharer, thousandths)
