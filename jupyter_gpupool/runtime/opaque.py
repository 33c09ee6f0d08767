"""One result as its serialised frames, which nobody here can read: in memory, or in a file.

Made by `opaque_store`, sent on by distributed as it is. A result larger than one frame of a message
arrives cut in pieces; cut again on its way back, nothing would know how often. So it is put
together first.
"""

import mmap
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dask.sizeof import sizeof
from distributed.protocol.compression import decompress
from distributed.protocol.serialize import Serialized
from distributed.protocol.utils import host_array_from_buffers, merge_memoryviews

Frame = bytes | bytearray | memoryview
_OF_THE_JOURNEY = ("split-num-sub-frames", "split-offsets", "num-sub-frames", "compression")
_ERROR = "error"
"""Serializer's name in a header that brings an error's text instead of the result."""


class Opaque(Serialized):
    """A result that distributed sends on without reading it. Frames are read-only.

    Attributes:
        nbytes: What its frames take.
    """

    def __init__(self, header: dict[str, Any], frames: Sequence[Frame]) -> None:
        self._header = header
        self._frames = tuple(frames)
        self.nbytes = total_bytes(frames)

    @property
    def header(self) -> dict[str, Any]:
        """How to read it; the caller's own copy, for sending adds to it."""
        return dict(self._header)

    @property
    def frames(self) -> list[Frame]:
        """All of it."""
        return list(self._frames)

    def discard(self) -> None:
        """Let go of what it holds outside of memory."""


class Spilled(Opaque):
    """A result in a file, which goes when this is discarded.

    Raises:
        OSError: If it cannot be written.
    """

    def __init__(self, header: dict[str, Any], frames: Sequence[Frame], path: Path) -> None:
        self._header = header
        self._lengths = tuple(memoryview(frame).nbytes for frame in frames)
        self._path = path
        self.nbytes = sum(self._lengths)
        _write(path, frames)

    @property
    def frames(self) -> list[Frame]:
        """Views into the file's pages: they stay good when the file goes."""
        if not self.nbytes:
            return [b"" for _ in self._lengths]
        with self._path.open("rb") as file:
            pages = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        ends = _running_sums(self._lengths)
        return [pages[end - length : end] for length, end in zip(self._lengths, ends, strict=True)]

    def discard(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


def whole(header: dict[str, Any], frames: Sequence[Frame]) -> tuple[dict[str, Any], list[Frame]]:
    """A result as it was before it was cut and packed for its journey; copies only if it must."""
    unpacked = decompress(header, frames) if "compression" in header else list(frames)
    own = {key: value for key, value in header.items() if key not in _OF_THE_JOURNEY}
    if "split-num-sub-frames" not in header:
        return own, unpacked
    pieces = zip(header["split-num-sub-frames"], header["split-offsets"], strict=True)
    return own, [_joined(unpacked[offset : offset + count]) for count, offset in pieces]


def alone(frames: Iterable[Frame]) -> list[Frame]:
    """The frames, copied if they would keep much more in memory than themselves."""
    return [frame if _fills_its_buffer(frame) else bytes(frame) for frame in frames]


def error_in(header: dict[str, Any], frames: Sequence[Frame]) -> str:
    """Why the result could not be serialised where it came from, in a line; "" if it was."""
    if header.get("serializer") == _ERROR:
        return _last_line(frames)
    start = 0
    for inner, count in zip(
        header.get("sub-headers", ()), header.get("frame-lengths", ()), strict=True
    ):
        if found := error_in(inner, frames[start : start + count]):
            return found
        start += count
    return ""


def total_bytes(frames: Iterable[Frame]) -> int:
    """What frames take."""
    return sum(memoryview(frame).nbytes for frame in frames)


def _joined(pieces: list[Frame]) -> Frame:
    if len(pieces) == 1:
        return pieces[0]
    try:
        joined: Frame = merge_memoryviews([memoryview(piece) for piece in pieces])
    except (ValueError, TypeError):
        joined = host_array_from_buffers(pieces)
    return joined


def _fills_its_buffer(frame: Frame) -> bool:
    if not isinstance(frame, memoryview):
        return True
    # One message brings many results in one buffer, which lives as long as the last of them.
    return 2 * frame.nbytes > memoryview(frame.obj).nbytes


def _write(path: Path, frames: Iterable[Frame]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for frame in frames:
            _write_all(descriptor, memoryview(frame).cast("B"))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, frame: memoryview) -> None:
    while frame.nbytes:
        frame = frame[os.write(descriptor, frame) :]


def _running_sums(lengths: Iterable[int]) -> list[int]:
    sums, total = [], 0
    for length in lengths:
        total += length
        sums.append(total)
    return sums


def _last_line(frames: Sequence[Frame]) -> str:
    texts = [bytes(frame).decode(errors="replace").strip() for frame in frames]
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it cannot be serialised"


def _nbytes(result: Opaque) -> int:
    return result.nbytes


_sizes: Any = sizeof
_sizes.register(Opaque, _nbytes)
