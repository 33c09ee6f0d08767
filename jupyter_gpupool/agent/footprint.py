"""Which processes belong to a scheduler or worker, however they tried to get away. Pure.

A process belongs to it if it is in its session, descends from it, carries its marks in its
environment, writes to its log (which a fork without exec inherits), or sits in its control group.
Called by `sweeping` on a fresh process table, by `adoption`, and by `foreign` to tell our processes
from others'.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from .keys import ProcessKey
from .launching import CLAIM_MARK, LEASE_MARK
from .procfs import ProcessId, ProcessRow

HOST_MARK = "GPUPOOL_AGENT"
"""In the environment of the zygotes, and so of all their children: this host's id."""

Rows = Mapping[int, ProcessRow]
RowOf = Callable[[int], ProcessRow | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What tells one scheduler's or worker's processes from all others.

    Attributes:
        leader: The forked process itself, first of its session; None if its pid is not known.
        uid: Whose they are; None looks at everyone's.
        log: Path of its log.
        group: Folder of its control group, where there is one.
    """

    key: ProcessKey
    host_id: str
    leader: ProcessId | None
    uid: int | None
    log: str
    group: Path | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """How to look closer at a process: each costs a read, so only candidates are looked at."""

    environment: Callable[[int], Mapping[str, str]]
    output: Callable[[int], Collection[str]]
    user: Callable[[int], int | None]


class Kinship:
    """One process table, read once and asked about many footprints."""

    def __init__(self, rows: Rows, look: Look) -> None:
        self._rows = rows
        self._look = look
        self._in_session: dict[int, set[int]] = {}
        self._children: dict[int, list[int]] = {}
        self._marked: dict[tuple[str, str], set[int]] = {}
        self._writing: dict[tuple[str, str], set[int]] = {}
        for row in rows.values():
            self._in_session.setdefault(row.session, set()).add(row.id.pid)
            self._children.setdefault(row.parent, []).append(row.id.pid)
            self._take_marks(row.id.pid)

    def members(
        self, footprint: Footprint, *, grouped: frozenset[int] = frozenset()
    ) -> tuple[ProcessRow, ...]:
        """All that belongs to it, the leader included; `grouped` are the pids in its group."""
        key = footprint.key
        marked = self._marked.get((key.claim_id, key.mark), set())
        writing = self._writing.get((footprint.host_id, footprint.log), set())
        roots = {pid for pid in marked | writing if self._may_be_its(footprint, pid)}
        roots |= self._session_of(footprint.leader) | (grouped & self._rows.keys())
        return tuple(self._rows[pid] for pid in sorted(self._with_descendants(roots)))

    def _take_marks(self, pid: int) -> None:
        environment = self._look.environment(pid)
        if CLAIM_MARK in environment and LEASE_MARK in environment:
            name = (environment[CLAIM_MARK], environment[LEASE_MARK])
            self._marked.setdefault(name, set()).add(pid)
        if HOST_MARK in environment:
            for path in self._look.output(pid):
                self._writing.setdefault((environment[HOST_MARK], path), set()).add(pid)

    def _may_be_its(self, footprint: Footprint, pid: int) -> bool:
        return footprint.uid is None or self._look.user(pid) == footprint.uid

    def _session_of(self, leader: ProcessId | None) -> set[int]:
        if leader is None:
            return set()
        now_there = self._rows.get(leader.pid)
        if now_there is not None and now_there.id != leader:
            # The pid came back, which it cannot while anything of the old session is left.
            return set()
        return self._in_session.get(leader.pid, set())

    def _with_descendants(self, roots: set[int]) -> set[int]:
        found, ahead = set(roots), list(roots)
        while ahead:
            for child in self._children.get(ahead.pop(), ()):
                if child not in found:
                    found.add(child)
                    ahead.append(child)
        return found


def belongs(footprint: Footprint, pid: int, row_of: RowOf, look: Look) -> bool:
    """Whether one process belongs to it; cheaper than all members when few are asked about."""
    if _is_marked(footprint, pid, look):
        return True
    leader, row = footprint.leader, row_of(pid)
    while leader is not None and row is not None and row.id.pid > 1:
        if row.session == leader.pid:
            now_there = row_of(leader.pid)
            return now_there is None or now_there.id == leader
        row = row_of(row.parent)
    return False


def carries_marks(environment: Mapping[str, str], key: ProcessKey) -> bool:
    """Whether a program was started by this very scheduler or worker."""
    return environment.get(CLAIM_MARK) == key.claim_id and environment.get(LEASE_MARK) == key.mark


def _is_marked(footprint: Footprint, pid: int, look: Look) -> bool:
    if footprint.uid is not None and look.user(pid) != footprint.uid:
        return False
    environment = look.environment(pid)
    if carries_marks(environment, footprint.key):
        return True
    return environment.get(HOST_MARK) == footprint.host_id and footprint.log in look.output(pid)
