"""What is known of a claim's processes here that tells what is theirs, for as long as it matters.

Kept by `leftovers`, a file a claim, so that an agent that is killed while it tidies up after one is
followed by one that goes on.
"""

import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid

from .state_folder import write_whole

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Owed:
    """Something that could not be removed.

    Attributes:
        path: What is tried again, from a folder that is no user's.
        what: What of it is stuck, and why.
        devices: Those of the workers that left it.
        uid: Whose it has to be still when it is tried again; None for what lies in the agent's own
            folder, where nobody else can put anything.
    """

    path: str
    what: str
    devices: tuple[DeviceUuid, ...]
    uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """One claim's.

    Attributes:
        boot: Of which run of the kernel its pids and inodes are.
        since_s: Wall clock; before its first process here.
        before: Inodes of what was in shared memory then.
        pids: Of its processes, as far as they were seen.
        held: Files that they had open, or sockets they had bound, when they were ended.
        owed: What could not be removed; it is tried again until it is gone.
    """

    boot: str
    since_s: float
    before: frozenset[int] = frozenset()
    pids: frozenset[int] = frozenset()
    held: frozenset[str] = frozenset()
    owed: tuple[Owed, ...] = ()


class TrailFiles:
    """Trails in a folder; in none, they are not kept.

    What cannot be written is no reason to stop: a next agent then knows less.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def write(self, claim_id: ClaimId, trail: Trail) -> None:
        """Keep it."""
        if self._folder is None:
            return
        known = {key: _plain(value) for key, value in asdict(trail).items()}
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(self._path(self._folder, claim_id), json.dumps(known).encode(), sync=False)
        except OSError as error:
            logger.warning("What claim %s leaves is not noted: %s", claim_id, error.strerror)

    def forget(self, claim_id: ClaimId) -> None:
        """It matters no more."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._path(self._folder, claim_id).unlink(missing_ok=True)

    def load(self, boot: str) -> dict[ClaimId, Trail]:
        """All there are. After another start of the kernel only what is owed still counts."""
        if self._folder is None or not self._folder.is_dir():
            return {}
        found = {ClaimId(path.stem): _read(path) for path in self._folder.glob("*.json")}
        return {
            claim_id: trail if trail.boot == boot else _of_earlier_boot(trail, boot)
            for claim_id, trail in found.items()
            if trail is not None
        }

    @staticmethod
    def _path(folder: Path, claim_id: ClaimId) -> Path:
        return folder / f"{claim_id}.json"


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _of_earlier_boot(trail: Trail, boot: str) -> Trail:
    nothing: frozenset[Any] = frozenset()
    return replace(trail, boot=boot, before=nothing, pids=nothing, held=nothing)


def _read(path: Path) -> Trail | None:
    try:
        return _trail(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        logger.warning("%s cannot be read: nothing is removed by it.", path)
        return None


def _trail(known: Mapping[str, Any]) -> Trail:
    return Trail(
        boot=str(known["boot"]),
        since_s=float(known["since_s"]),
        before=frozenset(map(int, known["before"])),
        pids=frozenset(map(int, known["pids"])),
        held=frozenset(map(str, known["held"])),
        owed=tuple(
            Owed(
                str(each["path"]),
                str(each["what"]),
                tuple(map(DeviceUuid, each["devices"])),
                each.get("uid"),
            )
            for each in known["owed"]
        ),
    )
