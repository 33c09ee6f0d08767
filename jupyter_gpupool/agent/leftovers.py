"""What processes of a claim leave on their host: noted while they live, then removed, or owed.

Called by `sweeping` around the end of each scheduler and worker, and by `carry_out` for the claim's
folder. Removed is what can only be theirs, which `left_behind` judges; all else stays. What is
theirs and cannot be removed keeps their devices from being leased: see `dirty`.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid

from . import procfs, sysv_memory
from .footprint import Footprint
from .held_files import held_by
from .left_behind import Places, inodes, is_left, made_by_dead, not_held
from .removing import Stuck, remove
from .trail import Owed, Trail, TrailFiles

logger = logging.getLogger(__name__)

_MOST_NAMED = 3


class Leftovers:
    """What is known of what claims leave, by claim. Asked from the loop and from threads.

    Args:
        places: Where processes leave things.
        kept: Where it is kept for a next agent; None forgets it with this one.
    """

    def __init__(self, places: Places | None = None, kept: Path | None = None) -> None:
        self._places = places or Places()
        self._boot = procfs.boot_id()
        self._files = TrailFiles(kept)
        self._trails = self._files.load(self._boot)
        self._lock = Lock()

    @property
    def dirty(self) -> Mapping[DeviceUuid, str]:
        """Devices of claims that left what cannot be removed, and why."""
        found: dict[DeviceUuid, list[str]] = {}
        for trail in tuple(self._trails.values()):
            for each in trail.owed:
                for device in each.devices:
                    found.setdefault(device, []).append(each.what)
        return {device: _sentence(paths) for device, paths in found.items()}

    def note_start(self, claim_id: ClaimId) -> None:
        """Remember what is there before the first process of a claim starts here."""
        with self._lock:
            if claim_id in self._trails:
                return
            before = frozenset(inodes(self._places.memory))
            trail = Trail(boot=self._boot, since_s=time.time(), before=before)
            self._trails[claim_id] = trail
            self._files.write(claim_id, trail)

    def forget_others(self, keep: Collection[ClaimId]) -> None:
        """These claims alone can still have processes here; what is owed is not forgotten."""
        with self._lock:
            gone = [c for c, trail in self._trails.items() if c not in keep and not trail.owed]
            for claim_id in gone:
                del self._trails[claim_id]
                self._files.forget(claim_id)

    def note(self, footprint: Footprint, pids: Sequence[int]) -> None:
        """Remember what these processes of a claim hold, who are about to be ended."""
        trail = self._trails.get(footprint.key.claim_id)
        if trail is None:
            # Of before a restart, or a claim that was forgotten: whose what is, is not known.
            return
        seen = held_by(pids, self._places.all)
        held = self._places.certain(seen, trail.before)
        if doubtful := sorted(self._places.in_doubt(seen, trail)):
            logger.info(
                "Claim %s has open at its end, and maybe somebody wants them: %s. They stay.",
                footprint.key.claim_id,
                _first_of(doubtful),
            )
        self._change(
            footprint.key.claim_id,
            lambda now: replace(now, pids=now.pids | frozenset(pids), held=now.held | held),
        )

    def clean(self, footprint: Footprint, devices: Sequence[DeviceUuid] = ()) -> None:
        """Remove what the processes of this footprint have left, who are dead."""
        claim_id, uid = footprint.key.claim_id, footprint.uid
        trail = self._trails.get(claim_id)
        if trail is None or uid is None:
            return
        leader = frozenset() if footprint.leader is None else frozenset({footprint.leader.pid})
        pids = frozenset(filter(_is_dead, trail.pids | leader))
        named = made_by_dead(self._places, pids, trail)
        held = (Path(each) for each in trail.held)
        left = not_held({path for path in (*named, *held) if is_left(path, uid)})
        for path in sorted(left):
            if stuck := _removed(path):
                self._owe(claim_id, Owed(str(path), str(stuck), tuple(devices), uid))
        for segment in sysv_memory.left_by(pids, uid, trail.since_s):
            why = sysv_memory.remove(segment)
            logger.info("%s of claim %s: %s", segment, claim_id, why or "removed")
        still = frozenset(each for each in trail.held if Path(each).exists())
        self._change(claim_id, lambda now: replace(now, held=now.held & still))

    def owe(
        self, claim_id: ClaimId, path: Path, stuck: Stuck, devices: Sequence[DeviceUuid]
    ) -> None:
        """This of the agent's own folder could not be removed; it is tried again and again."""
        self._owe(claim_id, Owed(str(path), str(stuck), tuple(devices)))

    def _owe(self, claim_id: ClaimId, owed: Owed) -> None:
        logger.warning("What claim %s left cannot be removed: %s", claim_id, owed.what)
        with self._lock:
            nothing = Trail(boot=self._boot, since_s=time.time())
            trail = self._trails.setdefault(claim_id, nothing)
            self._trails[claim_id] = trail = replace(trail, owed=_joined(trail.owed, owed))
            self._files.write(claim_id, trail)

    def retry(self) -> bool:
        """Try again to remove what is owed; whether any of it is gone now."""
        is_news = False
        for claim_id, trail in tuple(self._trails.items()):
            gone = frozenset(each for each in trail.owed if _is_gone(each))
            if gone:
                is_news = True
                self._change(
                    claim_id,
                    lambda now, gone=gone: replace(  # type: ignore[misc]  # bound, for it changes
                        now, owed=tuple(each for each in now.owed if each not in gone)
                    ),
                )
        return is_news

    @property
    def owes(self) -> bool:
        """Whether anything is to be tried again."""
        return any(trail.owed for trail in tuple(self._trails.values()))

    def _change(self, claim_id: ClaimId, change: Callable[[Trail], Trail]) -> None:
        with self._lock:
            before = self._trails.get(claim_id)
            if before is None or (after := change(before)) == before:
                return
            self._trails[claim_id] = after
            # Here, so that no older one comes after it, and two share no draft.
            self._files.write(claim_id, after)


def _is_gone(owed: Owed) -> bool:
    """Whether it is removed now, or has given way to something that is not the claim's."""
    path = Path(owed.path)
    if owed.uid is not None:
        if not is_left(path, owed.uid):
            return True
        if not not_held({path}):
            return False
    return remove(path) is None


def _joined(known: Iterable[Owed], new: Owed) -> tuple[Owed, ...]:
    """With one more; whoever tells of one again may know fewer of its devices."""
    others = tuple(each for each in known if each.path != new.path)
    devices = (device for each in known if each.path == new.path for device in each.devices)
    return (*others, replace(new, devices=tuple(dict.fromkeys((*devices, *new.devices)))))


def _is_dead(pid: int) -> bool:
    row = procfs.read_row(pid)
    return row is None or row.is_dead


def _removed(path: Path) -> Stuck | None:
    stuck = remove(path)
    if stuck is None:
        logger.info("What a claim's processes had left behind is removed: %s", path)
    return stuck


def _sentence(paths: Sequence[str]) -> str:
    return f"Its last claim left what cannot be removed: {_first_of(paths)}."


def _first_of(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(paths[:_MOST_NAMED]) + more
