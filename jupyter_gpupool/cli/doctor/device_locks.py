"""Does another pool on this machine hold devices? Asks their locks, and takes none for itself."""

import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .finding import Finding, Severity, note, problem, warning, well
from .pool_view import PoolView
from .sight import Sight

_LOCKS = Path("/proc/locks")
_SHARED_BY_ALL = 0o1777
_MOST_LISTED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLock:
    """A device's lock that somebody holds.

    Attributes:
        device: As the lock's file is named.
        pid: Who took it; None if that cannot be seen.
        uid: Whose process that is; None if it is gone: what it started may hold the lock on.
    """

    device: str
    pid: int | None = None
    uid: int | None = None


def check_device_locks(sight: Sight) -> Iterator[Finding]:
    """Look into the folder that all pools of a machine agree on."""
    from jupyter_gpupool.agent.devices.lock_folder import agreed_folder  # noqa: PLC0415 - a service

    folder = agreed_folder()
    found = judge_lock_folder(folder)
    if found is not None:
        yield found
    if found is None or found.severity is Severity.WELL:
        yield from judge_locks(held_locks(folder), sight.view(), os.getuid())


def judge_lock_folder(folder: Path) -> Finding | None:
    """Whether pools of all users can lock devices there; None while nobody has made it yet."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == _SHARED_BY_ALL:
        if os.geteuid() == 0 != status.st_uid:
            # Not looked into: whoever asks for locks as root makes the folder root's.
            what = f"Devices are locked in {folder}, which belongs to user {status.st_uid}."
            return note("device-locks-not-roots", what, f"Run: chown root:root {folder}")
        return well("device-locks", f"Devices are locked in {folder}, which all users share.")
    return problem(
        "device-locks-closed",
        f"{folder} is no folder that all users can share, so a pool cannot lock devices.",
        f"Let its owner, or root, run: chmod {_SHARED_BY_ALL:o} {folder}",
    )


def judge_locks(held: Sequence[HeldLock], pool: PoolView, own_uid: int) -> Iterator[Finding]:
    """A device that another pool holds cannot be claimed; our own pool's leases are as meant."""
    leased = {_as_file(view.uuid) for view in pool.devices if view.leased}
    others = [lock for lock in held if lock.device not in leased and lock.uid != own_uid]
    own = [lock for lock in held if lock.device not in leased and lock.uid == own_uid]
    if others:
        yield warning(
            "second-pool",
            f"A second pool on this machine holds {_listed(others)}.",
            "Wait for it to end its claims, or use that pool: GPUPOOL_URL names it.",
        )
    if own:
        yield note(
            "own-second-pool",
            f"Another pool of your own holds {_listed(own)}.",
            "Release its claims to have the devices here.",
        )
    if not others and not own:
        yield well("no-second-pool", "No other pool on this machine holds a device.")


def _listed(locks: Sequence[HeldLock]) -> str:
    further = len(locks) - _MOST_LISTED
    named = ", ".join(map(_told, locks[:_MOST_LISTED]))
    return f"{named} and {further} more" if further > 0 else named


def held_locks(folder: Path) -> tuple[HeldLock, ...]:
    """The locks in this folder that are held now."""
    from jupyter_gpupool.agent.devices.lock import DeviceLocks  # noqa: PLC0415 - a service
    from jupyter_gpupool.pool.ids import DeviceUuid  # noqa: PLC0415 - as above

    if not folder.is_dir():
        return ()
    locks = DeviceLocks(folder)
    paths = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    held = [path for path in paths if locks.is_held_elsewhere(DeviceUuid(path.name))]
    return tuple(_held(path) for path in held)


def _held(path: Path) -> HeldLock:
    pid = _holder(path.stat())
    try:
        uid = None if pid is None else Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        uid = None
    return HeldLock(device=path.name, pid=pid, uid=uid)


def _holder(file: os.stat_result) -> int | None:
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    for line in _LOCKS.read_text(encoding="ascii").splitlines():
        fields = line.split()
        if "FLOCK" in fields and place in fields:
            return int(fields[fields.index(place) - 1])
    return None


def _told(lock: HeldLock) -> str:
    if lock.uid is None:
        return lock.device
    return f"{lock.device} (process {lock.pid} of {_name_of(lock.uid)})"


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _as_file(uuid: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "-" else "_" for letter in uuid)
