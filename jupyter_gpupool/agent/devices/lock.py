"""The host-wide lock on each device: two pools on one host never lease the same one.

Held by the agent that leases the device and, through an inherited descriptor, by the worker on it.
It is an flock: it ends with the last process that has the descriptor open, however that dies, and
so outlives an agent. Files are left lying: to remove one would let two pools lock two files.
"""

import fcntl
import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, NewType

from jupyter_gpupool.pool.errors import Conflict, PoolError
from jupyter_gpupool.pool.ids import DeviceUuid

from .lock_folder import find_folder, open_if_there, open_lock_file

LockFd = NewType("LockFd", int)
"""A descriptor whose open file holds a device's lock. Pass it on by fork or SCM_RIGHTS; each
holder only ever closes it, for unlocking it would unlock it for all."""

_PROBE_PATIENCE_S = 0.05
_PROBE_STEP_S = 0.002
_MOST_REPLACEMENTS = 10
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9-]")


class DeviceHeldElsewhere(Conflict):
    """Another pool on this host has leased the device, or a worker that nobody has adopted yet."""

    reference: ClassVar[str] = "device-held-elsewhere"

    def __init__(self, uuid: DeviceUuid) -> None:
        super().__init__(
            f"Device {uuid} is leased by another pool on this host.",
            hint="It becomes free when that pool's worker on it has ended.",
        )
        self.uuid = uuid


class NotTheLock(Conflict):
    """A descriptor was handed back that is not the lock of this device."""

    reference: ClassVar[str] = "not-the-lock"

    def __init__(self, uuid: DeviceUuid) -> None:
        super().__init__(f"The descriptor handed back is not the lock of device {uuid}.")
        self.uuid = uuid


class LockLost(Conflict):
    """A lock that was held here is another pool's now, or its file can be used no more."""

    reference: ClassVar[str] = "device-lock-lost"

    def __init__(self, uuid: DeviceUuid) -> None:
        super().__init__(
            f"The lock of device {uuid} was taken away while this pool used the device.",
            hint="See who replaces or unlocks the files in the folder for device locks.",
        )
        self.uuid = uuid


class DeviceLocks:
    """The locks this agent holds. Calls do not wait, except `acquire` for up to 50 ms.

    Args:
        folder: Where the lock files are; None is the one that all pools of this host agree on.

    Raises:
        Unavailable: If no folder can be shared with the host's other pools.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = find_folder(folder)
        self._held: dict[DeviceUuid, LockFd] = {}
        self._expected: set[DeviceUuid] = set()

    def held(self) -> frozenset[DeviceUuid]:
        """The devices whose lock this agent holds."""
        return frozenset(self._held)

    def acquire(self, uuid: DeviceUuid) -> LockFd:
        """Take a device's lock, or return it if it is held here already.

        Raises:
            DeviceHeldElsewhere: If another open file has it.
            Unavailable: If the lock file cannot be opened.
        """
        if uuid not in self._held:
            self._held[uuid] = self._take(uuid)
            self._expected.discard(uuid)
        return self._held[uuid]

    def release(self, uuid: DeviceUuid) -> None:
        """Let go of a device's lock here. It ends once no other process has it open."""
        self._expected.discard(uuid)
        fd = self._held.pop(uuid, None)
        if fd is not None:
            # Closed, not unlocked: a worker that still has it keeps the device from other pools.
            os.close(fd)

    def expect_back(self, uuid: DeviceUuid) -> None:
        """Know that a worker of an earlier agent of ours holds the lock and will hand it back.

        Until `adopt`, `acquire` or `release`, the device does not count as held elsewhere.
        """
        self._expected.add(uuid)

    def adopt(self, uuid: DeviceUuid, fd: int) -> LockFd:
        """Take over a lock from the worker that kept it. `fd` is this object's from now on.

        Raises:
            NotTheLock: If it is another file, or one that was replaced. It is closed.
            DeviceHeldElsewhere: If it has lost the lock to another open file. It is closed.
        """
        if uuid in self._held:
            os.close(fd)
            return self._held[uuid]
        if not self._is_file_of(uuid, fd):
            os.close(fd)
            raise NotTheLock(uuid)
        try:
            # Does nothing for the open file that has the lock, and takes it if it had got lost.
            self._lock_patiently(uuid, fd)
        except DeviceHeldElsewhere:
            os.close(fd)
            raise
        os.set_inheritable(fd, False)
        self._held[uuid] = LockFd(fd)
        self._expected.discard(uuid)
        return self._held[uuid]

    def keep(self) -> dict[DeviceUuid, LockLost]:
        """See to it that each lock is still held in the file that others see; call it often.

        Returns:
            What went wrong with those that could not be kept. They are tried again next time.
        """
        lost = {}
        for uuid, fd in tuple(self._held.items()):
            # Cleaners of temporary folders remove what is old, held or not.
            with suppress(OSError):
                os.utime(fd)
            # Does nothing for a lock that is held. A worker's code may have unlocked it.
            if self._is_file_of(uuid, fd) and _try_lock(fd, fcntl.LOCK_EX):
                continue
            try:
                self._held[uuid] = self._take(uuid, patience_s=0)
            except PoolError:
                lost[uuid] = LockLost(uuid)
            else:
                os.close(fd)
        return lost

    def is_held_elsewhere(self, uuid: DeviceUuid) -> bool:
        """Whether somebody other than this agent, and its own worker, has the lock now.

        Raises:
            Unavailable: If the lock file cannot be opened.
        """
        if uuid in self._held or uuid in self._expected:
            return False
        fd = open_if_there(self._path(uuid))
        if fd is None:
            return False
        try:
            # Shared, and for microseconds: two who ask at once do not take each other for holders.
            return not _try_lock(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Let go of every lock; those that workers have open stay locked."""
        for uuid in tuple(self._held):
            self.release(uuid)

    def _take(self, uuid: DeviceUuid, patience_s: float = _PROBE_PATIENCE_S) -> LockFd:
        for _ in range(_MOST_REPLACEMENTS):
            fd = open_lock_file(self._path(uuid))
            try:
                self._lock_patiently(uuid, fd, patience_s)
                if self._is_file_of(uuid, fd):
                    return LockFd(fd)
            except BaseException:
                os.close(fd)
                raise
            # Somebody replaced the file in between: what we locked, nobody else can see.
            os.close(fd)
        raise DeviceHeldElsewhere(uuid)

    def _lock_patiently(
        self, uuid: DeviceUuid, fd: int, patience_s: float = _PROBE_PATIENCE_S
    ) -> None:
        deadline_s = time.monotonic() + patience_s
        while not _try_lock(fd, fcntl.LOCK_EX):
            if time.monotonic() > deadline_s:
                raise DeviceHeldElsewhere(uuid)
            # It may be no more than somebody's question.
            time.sleep(_PROBE_STEP_S)

    def _is_file_of(self, uuid: DeviceUuid, fd: int) -> bool:
        try:
            there, here = os.lstat(self._path(uuid)), os.fstat(fd)
        except OSError:
            return False
        return stat.S_ISREG(there.st_mode) and os.path.samestat(there, here)

    def _path(self, uuid: DeviceUuid) -> Path:
        # Old drivers write a MIG instance as "MIG-GPU-…/1/0".
        return self._folder / _NOT_IN_NAMES.sub("_", uuid)


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
