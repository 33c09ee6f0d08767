"""Which cell runs on which of this worker's threads, and how it is interrupted. On workers only.

Python has no signals for threads: an exception is left for the thread, which raises it as soon as
it runs Python code again. A cell that sleeps is woken; one within a long call of C cannot be.
"""

import ctypes
import threading
import time

_MOST_CALLED_OFF = 1000


class Run:
    """A cell on the thread that runs it."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._woken = threading.Event()
        self._lock = threading.Lock()
        self._is_over = False

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the cell, unless it is over."""
        with self._lock:
            if not self._is_over:
                _leave_exception(self.thread, KeyboardInterrupt)
                self._woken.set()

    def end(self) -> None:
        """From now on nothing is raised in its thread any more."""
        with self._lock:
            self._is_over = True
            _leave_exception(self.thread, None)

    def sleep(self, seconds: float) -> None:
        """Sleep until the time is over or the cell is interrupted."""
        self._woken.clear()
        self._woken.wait(min(seconds, threading.TIMEOUT_MAX))


class Runs:
    """The cells that run now."""

    def __init__(self) -> None:
        self._by_cell: dict[str, Run] = {}
        self._by_thread: dict[int, Run] = {}
        self._called_off: dict[str, None] = {}

    def begin(self, cell: str) -> Run:
        """A cell runs on this thread from now on.

        Raises:
            KeyboardInterrupt: If it was interrupted before it began.
        """
        if cell in self._called_off:
            raise KeyboardInterrupt
        run = Run()
        self._by_cell[cell] = self._by_thread[run.thread] = run
        return run

    def end(self, cell: str) -> None:
        """The cell is over; a second time does nothing."""
        run = self._by_cell.get(cell)
        if run is not None:
            run.end()
            self._by_thread.pop(run.thread, None)
            self._by_cell.pop(cell, None)

    def interrupt(self, cell: str) -> None:
        """Interrupt a cell, also one that has not begun."""
        run = self._by_cell.get(cell)
        if run is not None:
            run.interrupt()
        else:
            # Some of these are over already, and will never ask.
            while len(self._called_off) >= _MOST_CALLED_OFF:
                self._called_off.pop(next(iter(self._called_off)))
            self._called_off[cell] = None

    def here(self) -> Run | None:
        """The one of this thread."""
        return self._by_thread.get(threading.get_ident())


RUNS = Runs()
"""The worker's own."""

_sleep = time.sleep


def _sleep_or_be_woken(seconds: float, /) -> None:
    run = RUNS.here()
    if run is None or not seconds > 0:
        _sleep(seconds)
    else:
        run.sleep(seconds)


def make_sleep_wakeable() -> None:
    """Let an interrupt wake a cell from `time.sleep`, the commonest of waits."""
    time.sleep = _sleep_or_be_woken  # type: ignore[assignment]


def _leave_exception(thread: int, kind: type[BaseException] | None) -> None:
    raised = ctypes.py_object() if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
