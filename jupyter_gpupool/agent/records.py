"""Records of what runs here, one file a process, so that the next agent can adopt it.

A record is written before its process is asked for, and again once the pid is known. A kill between
the two leaves a record without a pid, whose process `adoption` finds by its marks. The file's name
says who the process is and its content which process it is, so even a damaged file loses nothing.
Records hold no secret, and are not synced to disk: a power cut that could lose one also ends the
processes it speaks of. Called by `record_keeping`, which says when a record is written.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, LeaseId
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.protocol.launch import Role

from .keys import ProcessKey
from .procfs import ProcessId
from .restarts import NO_HISTORY, History
from .seen import Seen, Stage
from .sendable import sendable
from .state_folder import write_whole

_PARTS = 4
_SET_ASIDE_KEPT_S = 7 * 86400.0
_FOUND_AGAIN = frozenset({Stage.FORKING, Stage.ALIVE})
"""Stages in which the next agent finds out what a damaged record would have said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was found in the folder.

    Attributes:
        seen: Each process as it was last written; without a pid if that was not known, or if the
            kernel has been started anew since.
        problem: One sentence if something could not be read, else "".
    """

    seen: tuple[Seen, ...]
    problem: str = ""


class Records:
    """The files in `running/`.

    Raises:
        Unavailable: From `write`, if the folder cannot be written; the sentence says why.
    """

    def __init__(self, folder: Path, *, boot: str) -> None:
        self._folder = folder
        self._boot = boot

    def write(self, seen: Seen) -> None:
        """Write what is known of a process now."""
        content = json.dumps(_content(seen, self._boot)).encode()
        path = self._folder / _file_name(seen)
        try:
            # Only its content says which further devices it has: that must never be half a file.
            if seen.stage in _FOUND_AGAIN and not seen.further:
                _write_over(path, content)
            else:
                write_whole(path, content, sync=False)
        except OSError as error:
            raise Unavailable(
                f"The agent cannot write its state folder {self._folder.parent}: {error.strerror}.",
                hint="Free some space, or make it writable.",
            ) from error

    def remove(self, seen: Seen) -> None:
        """Forget a process of which nothing is left."""
        try:
            (self._folder / _file_name(seen)).unlink(missing_ok=True)
        except OSError as error:
            raise Unavailable(
                f"The agent cannot write its state folder {self._folder.parent}: {error.strerror}.",
                hint="Make it writable.",
            ) from error

    def tidy(self) -> None:
        """Drop what was set aside long ago, and drafts that a dead agent left."""
        since_s = time.time() - _SET_ASIDE_KEPT_S
        for path in (*self._folder.glob("*.strange"), *self._folder.glob(".*.draft")):
            try:
                if path.stat().st_mtime < since_s:
                    path.unlink()
            except OSError:
                # It harms nobody.
                continue

    def load(self) -> Loaded:
        """Read every record; what cannot be read is set aside and said."""
        seen: list[Seen] = []
        strange: list[str] = []
        for path in sorted(self._folder.glob("*.json")):
            named = _named(path.stem)
            if named is None:
                strange.append(path.name)
                _set_aside(path)
                continue
            known = _read(path, named, self._boot)
            if known is None:
                strange.append(path.name)
            seen.append(known or named)
        return Loaded(seen=tuple(seen), problem=_problem(strange, self._folder))


def _file_name(seen: Seen) -> str:
    key = seen.key
    parts = (key.claim_id, str(key.start), key.lease_id or "", seen.device or "")
    return ",".join(quote(part, safe="") for part in parts) + ".json"


def _write_over(path: Path, content: bytes) -> None:
    """Write a record in its place, for renaming a draft takes long and a claim waits.

    If only half of it is ever written, its name and the process's marks still say all it would.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)


def _named(stem: str) -> Seen | None:
    parts = [unquote(part) for part in stem.split(",")]
    if len(parts) != _PARTS or not parts[0] or not parts[1].isdigit():
        return None
    claim, start, lease, device = parts
    key = ProcessKey(ClaimId(claim), int(start), LeaseId(lease) if lease else None)
    if (key.role is Role.WORKER) is not bool(device):
        return None
    return Seen(
        key=key,
        stage=Stage.FORKING,
        uid=None,
        device=DeviceUuid(device) if device else None,
    )


def _content(seen: Seen, boot: str) -> dict[str, Any]:
    process = seen.process
    return {
        "boot": boot,
        "stage": seen.stage,
        "uid": seen.uid,
        "used": seen.used,
        "pid": process.pid if process else None,
        "started_ticks": process.started_ticks if process else None,
        "address": seen.address,
        "dashboard_port": seen.dashboard_port,
        "registered": seen.registered,
        "problem": seen.problem,
        "crashes_s": seen.history.crashes_s,
        "clean_ends_s": seen.history.clean_ends_s,
        "restarts": seen.history.restarts,
        "further": seen.further,
        "share": seen.share,
        "baselines": seen.baselines,
        "memory_limit_bytes": seen.memory_limit_bytes,
    }


def _read(path: Path, named: Seen, boot: str) -> Seen | None:
    try:
        content = path.read_bytes()
        if not content:
            # What a power cut may leave of a file; nothing that it spoke of is alive.
            return named
        known = json.loads(content)
        same_boot = known["boot"] == boot
        return Seen(
            key=named.key,
            device=named.device,
            stage=Stage(known["stage"]),
            uid=known["uid"],
            process=_process(known) if same_boot else None,
            # A record of an agent before this one did not say.
            used=bool(known.get("used", True)),
            address=sendable(known["address"]) if known["address"] and same_boot else None,
            dashboard_port=known["dashboard_port"] if same_boot else None,
            registered=bool(known["registered"]) and same_boot,
            problem=sendable(str(known["problem"])),
            history=_history(known) if same_boot else NO_HISTORY,
            further=tuple(map(DeviceUuid, known.get("further", ()))),
            share=int(known.get("share", WHOLE_DEVICE)),
            # An agent before this one wrote that of its only device.
            baselines=tuple(known.get("baselines", (known.get("baseline_bytes"),))),
            memory_limit_bytes=known["memory_limit_bytes"],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _process(known: dict[str, Any]) -> ProcessId | None:
    if known["pid"] is None:
        return None
    return ProcessId(int(known["pid"]), int(known["started_ticks"]))


def _history(known: dict[str, Any]) -> History:
    return History(
        crashes_s=tuple(map(float, known["crashes_s"])),
        clean_ends_s=tuple(map(float, known["clean_ends_s"])),
        restarts=int(known["restarts"]),
    )


def _set_aside(path: Path) -> None:
    try:
        path.rename(path.with_suffix(".strange"))
    except OSError:
        # It stays where it is and is said again next time; nothing depends on it.
        return


def _problem(strange: list[str], folder: Path) -> str:
    if not strange:
        return ""
    return f"Records in {folder} are damaged and were read by their names: {', '.join(strange)}."
