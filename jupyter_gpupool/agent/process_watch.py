"""Hears of the end of processes, own children or not, without asking again and again.

A pidfd becomes readable when its process ends. Only the parent, the zygote, knows how it ended;
`zygotes.Zygotes` passes that on through `ended_with`, which may come before or after.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

from . import procfs
from .keys import ProcessKey
from .procfs import ProcessId

logger = logging.getLogger(__name__)

_WAIT_FOR_STATUS_S = 0.25
_MOST_STATUSES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A watched process has ended. `status` is None where nobody could say how."""

    key: ProcessKey
    process: ProcessId
    status: int | None

    @property
    def words(self) -> str:
        """How it ended, for people."""
        if self.status is None:
            return "ended"
        if self.status < 0:
            return f"was killed by signal {-self.status}"
        return f"ended with exit code {self.status}"


class ProcessWatch:
    """Calls `ended` once for each watched process, in the event loop."""

    def __init__(self, ended: Callable[[Ended], None]) -> None:
        self._ended = ended
        self._watched: dict[int, tuple[ProcessKey, ProcessId, bool]] = {}
        self._descriptors: dict[int, int] = {}
        self._statuses: dict[int, int] = {}
        self._unseen: set[int] = set()

    def watch(self, key: ProcessKey, process: ProcessId, *, has_parent: bool) -> None:
        """Watch a process. `has_parent` is whether a zygote of ours will say how it ended."""
        pid = process.pid
        # Of an earlier process with that pid: this one's is never told before its fork is.
        self._statuses.pop(pid, None)
        self._watched[pid] = (key, process, has_parent)
        loop = asyncio.get_running_loop()
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            loop.call_soon(self._gone, pid)
            return
        except OSError as error:
            logger.warning("Process %d is looked at now and then: %s", pid, error.strerror)
            self._unseen.add(pid)
            return
        self._descriptors[pid] = descriptor
        loop.add_reader(descriptor, self._gone, pid)
        if not procfs.is_alive(process):
            loop.call_soon(self._gone, pid)

    def look(self) -> None:
        """See after those for which no descriptor was left."""
        for pid in tuple(self._unseen):
            watched = self._watched.get(pid)
            if watched is None or not procfs.is_alive(watched[1]):
                self._gone(pid)

    def ended_with(self, pid: int, status: int) -> None:
        """A zygote says how one of its children ended."""
        self._statuses[pid] = status
        while len(self._statuses) > _MOST_STATUSES:
            self._statuses.pop(next(iter(self._statuses)))
        if pid in self._watched and pid not in self._descriptors and pid not in self._unseen:
            self._tell(pid)

    def close(self) -> None:
        """Stop watching."""
        for pid in tuple(self._descriptors):
            self._let_go(pid)
        self._watched.clear()

    def _gone(self, pid: int) -> None:
        self._let_go(pid)
        if pid not in self._watched:
            return
        _, _, has_parent = self._watched[pid]
        if has_parent and pid not in self._statuses:
            asyncio.get_running_loop().call_later(_WAIT_FOR_STATUS_S, self._tell, pid)
        else:
            self._tell(pid)

    def _tell(self, pid: int) -> None:
        watched = self._watched.pop(pid, None)
        if watched is None:
            return
        key, process, _ = watched
        self._ended(Ended(key=key, process=process, status=self._statuses.pop(pid, None)))

    def _let_go(self, pid: int) -> None:
        self._unseen.discard(pid)
        descriptor = self._descriptors.pop(pid, None)
        if descriptor is not None:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)
