"""What a cell prints, told to its kernel while it runs. On workers only.

A worker's stdout is its log. Prints of a cell's own thread go to whoever started the cell instead;
those of other threads, and of C code, stay in the log. They travel as events of the scheduler, and
many together, so that a cell which prints in a loop floods nobody.
"""

import sys
import threading
from itertools import groupby
from operator import itemgetter
from typing import Any

from .cell import Cell, Stream

_GATHER_FOR_S = 0.05
_MOST_GATHERED = 256 * 1024
"""Characters; whoever prints faster than they are sent waits."""


class Speech:
    """Tells what one cell prints."""

    def __init__(self, worker: Any, cell: Cell) -> None:
        self._worker = worker
        self._cell = cell
        self._lock = threading.Lock()
        self._gathered: list[tuple[Stream, str]] = []
        self._size = 0
        self._has_room = threading.Event()
        self.spoken = 0
        self._send({"started": True})

    def write(self, stream: Stream, text: str) -> None:
        """Tell this soon."""
        with self._lock:
            is_first = not self._gathered
            self._gathered.append((stream, text))
            self._size += len(text)
            is_full = self._size > _MOST_GATHERED
            if is_full:
                self._has_room.clear()
        if is_first:
            self._worker.loop.add_callback(self._flush_soon)
        if is_full:
            self._has_room.wait(10 * _GATHER_FOR_S)

    def flush(self) -> None:
        """Tell what is gathered, now."""
        with self._lock:
            if self._gathered:
                self._send({"said": _merged(self._gathered)})
            self._gathered.clear()
            self._size = 0
        self._has_room.set()

    def _flush_soon(self) -> None:
        self._worker.loop.call_later(_GATHER_FOR_S, self.flush)

    def _send(self, said: dict[str, Any]) -> None:
        self.spoken += 1
        self._worker.log_event(self._cell.topic, {"cell": self._cell.id, **said})


class _Routed:
    """A text stream of the process that hands on what a cell's thread writes."""

    def __init__(self, stream: Stream, original: Any) -> None:
        self._stream = stream
        self._original = original

    def write(self, text: str) -> int:
        speech = _speeches.get(threading.get_ident())
        if speech is None:
            written: int = self._original.write(text)
            return written
        # Half a surrogate pair can be printed to nobody; Python itself writes it so to stderr.
        speech.write(self._stream, text.encode("utf-8", "backslashreplace").decode())
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if threading.get_ident() not in _speeches:
            self._original.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


_speeches: dict[int, Speech] = {}
"""By the thread whose cell they are of."""


def speak(speech: Speech | None) -> None:
    """What this thread prints goes here from now on; None is the worker's log again."""
    if not isinstance(sys.stdout, _Routed):
        routed: tuple[Any, Any] = (
            _Routed(Stream.STDOUT, sys.stdout),
            _Routed(Stream.STDERR, sys.stderr),
        )
        sys.stdout, sys.stderr = routed
    if speech is None:
        _speeches.pop(threading.get_ident(), None)
    else:
        _speeches[threading.get_ident()] = speech


def _merged(pieces: list[tuple[Stream, str]]) -> list[tuple[str, str]]:
    by_stream = groupby(pieces, key=itemgetter(0))
    return [(stream.value, "".join(text for _, text in run)) for stream, run in by_stream]
