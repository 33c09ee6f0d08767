"""Which processes belong to a scheduler or worker, however they tried to get away. Pure.

A process belongs to it if it is in its session, descends from it, carries its marks in its
environment, writes to its log (which a fork without exec inherits), or sits in its control group.
Called by `stopping` on a fresh process table, and by `foreign` to tell our processes from others'.
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


def members(
    footprint: Footprint, rows: Rows, look: Look, *, grouped: frozenset[int] = frozenset()
) -> tuple[ProcessRow, ...]:
    """All that belongs to it, the leader included; `grouped` are the pids in its group."""
    roots = _in_session(footprint, rows) | (grouped & rows.keys())
    roots |= {pid for pid in rows if pid not in roots and _is_marked(footprint, pid, look)}
    found = _with_descendants(roots, rows)
    return tuple(rows[pid] for pid in sorted(found))


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


def _in_session(footprint: Footprint, rows: Rows) -> set[int]:
    leader = footprint.leader
    if leader is None:
        return set()
    now_there = rows.get(leader.pid)
    if now_there is not None and now_there.id != leader:
        # The pid came back, which it cannot while anything of the old session is left.
        return set()
    return {row.id.pid for row in rows.values() if row.session == leader.pid}


def _is_marked(footprint: Footprint, pid: int, look: Look) -> bool:
    if footprint.uid is not None and look.user(pid) != footprint.uid:
        return False
    environment = look.environment(pid)
    if carries_marks(environment, footprint.key):
        return True
    return environment.get(HOST_MARK) == footprint.host_id and footprint.log in look.output(pid)


def _with_descendants(roots: set[int], rows: Rows) -> set[int]:
    children: dict[int, list[int]] = {}
    for row in rows.values():
        children.setdefault(row.parent, []).append(row.id.pid)
    found, ahead = set(roots), list(roots)
    while ahead:
        for child in children.get(ahead.pop(), ()):
            if child not in found:
                found.add(child)
                ahead.append(child)
    return found
