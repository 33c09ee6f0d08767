"""Where a holder keeps results: in memory up to a bound, beyond it in files, in all within a quota.

Owned by `holder`, as its worker's `data`. Results come in through `admit`, which may run in any
thread; whatever else distributed puts here is admitted on the spot. What stays for long goes to
files one by one (`largest_in_memory`, `written`, `swap`), so that nobody's device waits for a disk.
"""

import itertools
import shutil
import threading
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from distributed.protocol.serialize import Serialized

from jupyter_gpupool.protocol.keeping import UnkeptReason

from .opaque import Opaque, Spilled, alone, error_in, total_bytes, whole

_WORTH_A_FILE_BYTES = 16 * 1024


class CannotKeep(Exception):
    """A result that cannot be stored here."""

    def __init__(self, reason: UnkeptReason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class OpaqueStore(MutableMapping[Any, Any]):
    """Results by key. Makes its folder anew, and removes it with `close`.

    Args:
        memory_bytes: How much of the results may be in memory at any time.
        quota_bytes: How much there may be in all.
    """

    def __init__(self, folder: Path, *, memory_bytes: int, quota_bytes: int) -> None:
        self._results: dict[Any, Opaque] = {}
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._quota_bytes = quota_bytes
        self._names = itertools.count()
        self._lock = threading.Lock()
        self._in_memory_bytes = 0
        self._in_files_bytes = 0
        # What a holder that was killed has left is of no use: its results were lost with it.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)

    @property
    def held_bytes(self) -> int:
        """What all results take."""
        return self._in_memory_bytes + self._in_files_bytes

    @property
    def spilled_total(self) -> tuple[int, int]:
        """What is in files, as distributed asks for it: of memory saved, and of disk used."""
        return self._in_files_bytes, self._in_files_bytes

    def admit(self, result: Serialized) -> Opaque:
        """Take a result in. It counts from now on, and until it is discarded.

        Raises:
            CannotKeep: If it is none, is too large, or the disk is full.
        """
        if isinstance(result, Opaque):
            return result
        header, frames = whole(result.header, result.frames)
        if problem := error_in(header, frames):
            raise CannotKeep(UnkeptReason.UNWRITABLE, problem)
        nbytes = total_bytes(frames)
        if self._reserve(nbytes):
            return Opaque(header, alone(frames))
        try:
            return Spilled(header, frames, self._folder / str(next(self._names)))
        except OSError as error:
            self._release(nbytes, in_file=True)
            raise CannotKeep(UnkeptReason.NO_ROOM, error.strerror or str(error)) from error

    def discard(self, result: Opaque) -> None:
        """Let go of a result that was admitted."""
        self._release(result.nbytes, in_file=isinstance(result, Spilled))
        result.discard()

    def largest_in_memory(self) -> tuple[Any, Opaque] | None:
        """The result whose file would free most memory; None if none is worth one."""
        here = [
            (key, result)
            for key, result in self._results.items()
            if not isinstance(result, Spilled) and result.nbytes >= _WORTH_A_FILE_BYTES
        ]
        return max(here, key=lambda each: each[1].nbytes, default=None)

    def written(self, result: Opaque) -> Spilled:
        """The same in a file, which counts once it is swapped. May run in any thread.

        Raises:
            OSError: If it cannot be written.
        """
        return Spilled(result.header, result.frames, self._folder / str(next(self._names)))

    def swap(self, key: Any, result: Opaque, spilled: Spilled) -> None:
        """Put a result's file in its place, unless it has gone meanwhile."""
        if self._results.get(key) is not result:
            spilled.discard()
            return
        self._results[key] = spilled
        with self._lock:
            self._in_memory_bytes -= result.nbytes
            self._in_files_bytes += spilled.nbytes

    def close(self) -> None:
        """Leave nothing on the disk."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def __getitem__(self, key: Any) -> Opaque:
        return self._results[key]

    def __setitem__(self, key: Any, value: Serialized) -> None:
        older = self._results.get(key)
        admitted = self.admit(value)
        self._results[key] = admitted
        if older is not None and older is not admitted:
            self.discard(older)

    def __delitem__(self, key: Any) -> None:
        self.discard(self._results.pop(key))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def _reserve(self, nbytes: int) -> bool:
        """Make room; whether it is in memory."""
        with self._lock:
            if self.held_bytes + nbytes > self._quota_bytes:
                raise CannotKeep(
                    UnkeptReason.TOO_LARGE, f"the claim may keep {self._quota_bytes} bytes"
                )
            fits = self._in_memory_bytes + nbytes <= self._memory_bytes
            if fits:
                self._in_memory_bytes += nbytes
            else:
                self._in_files_bytes += nbytes
            return fits

    def _release(self, nbytes: int, *, in_file: bool) -> None:
        with self._lock:
            if in_file:
                self._in_files_bytes -= nbytes
            else:
                self._in_memory_bytes -= nbytes
