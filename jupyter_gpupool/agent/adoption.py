"""What a new agent takes over from a dead one: records and processes, and which match.

Called once by `host` at its start. Pure but for the looks it is given.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from jupyter_gpupool.protocol.launch import Role

from .footprint import HOST_MARK, Footprint, Kinship, Look, Rows
from .procfs import ProcessId, ProcessRow
from .seen import Seen, Stage, failed

FootprintOf = Callable[[Seen], Footprint]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What was found.

    Attributes:
        seen: What every record has become.
        strays: Processes with this host's mark that belong to no record: nobody wants them.
    """

    seen: tuple[Seen, ...]
    strays: tuple[ProcessRow, ...]


def adopt(
    recorded: Sequence[Seen],
    rows: Rows,
    look: Look,
    *,
    footprint_of: FootprintOf,
    host_id: str,
    now_s: float,
) -> Adopted:
    """Match records with processes."""
    seen = tuple(_found(one, rows, look, footprint_of(one), now_s) for one in recorded)
    kinship = Kinship(rows, look)
    kept = {row.id.pid for one in seen for row in kinship.members(footprint_of(one))}
    return Adopted(seen=seen, strays=tuple(_strays(rows, look, kept, host_id)))


def _found(seen: Seen, rows: Rows, look: Look, footprint: Footprint, now_s: float) -> Seen:
    if seen.stage in (Stage.FREEING, Stage.STOPPING):
        return replace(seen, stage=Stage.STOPPING)
    if seen.stage in (Stage.FAILED, Stage.RETIRED, Stage.AGAIN):
        return replace(seen, failed_at_s=now_s if seen.stage is Stage.FAILED else None)
    leader = seen.process or _leader(footprint, rows, look)
    if leader is not None and seen.stage is Stage.ALIVE:
        # Also if it has ended meanwhile: it is watched, and its end is then noticed as any other.
        return replace(seen, process=leader)
    # It may have run and ended unseen: whether its device is free has to be looked at.
    seen = replace(seen, used=True)
    if leader is not None:
        return replace(seen, process=leader, stage=Stage.ALIVE)
    if seen.key.role is Role.SCHEDULER:
        # Also if it may never have run: a second one would know nothing of the first one's workers.
        return failed(seen, "The scheduler ended while no agent ran on its host.", now_s)
    return replace(seen, stage=Stage.AGAIN, registered=False)


def _leader(footprint: Footprint, rows: Rows, look: Look) -> ProcessId | None:
    """The process of a record without a pid: first of its session, with its log as its output."""
    for row in rows.values():
        if row.session != row.id.pid or footprint.log not in look.output(row.id.pid):
            continue
        if look.environment(row.id.pid).get(HOST_MARK) == footprint.host_id:
            return row.id
    return None


def _strays(rows: Rows, look: Look, kept: set[int], host_id: str) -> Iterable[ProcessRow]:
    for pid, row in rows.items():
        if pid not in kept and look.environment(pid).get(HOST_MARK) == host_id:
            yield row
