"""A cell that runs on a worker, seen from its kernel: output as it comes, interrupts, the outcome.

Called by `running_there`, in the thread of the kernel's own cell, which is the one that is
interrupted and the one under which output is shown.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import Any

from jupyter_gpupool.pool.errors import PoolError, Unavailable

from .cell import Cell, Outcome, Stream
from .failures import Interrupted
from .on_worker import end_worker, forget_topic, interrupt_cell, run_cell
from .places import Place
from .taken_away import why_ended

_LOOK_EVERY_S = 0.5
_STOPS_WITHIN_S = 0.7
_SILENT_FOR_S = 2.0
_LAST_WORDS_WITHIN_S = 1.0
Tell = Callable[[Stream, str], None]


class TookTooLong(PoolError):
    """A cell was stopped at its time limit."""

    reference = "took-too-long"


class RemoteCell:
    """One run of one cell.

    Attributes:
        has_ended_worker: Whether its worker had to be ended to end it.
    """

    def __init__(self, place: Place, cell: Cell, tell: Tell) -> None:
        self.has_ended_worker = False
        self._place = place
        self._cell = cell
        self._tell = tell
        self._mail: SimpleQueue[Mapping[str, Any] | None] = SimpleQueue()
        self._heard = 0
        self._future: Any = None

    def run(self, ins: Mapping[str, bytes], limit_s: float | None) -> Outcome:
        """Run it to its end.

        Args:
            ins: Variables to set first, pickled.
            limit_s: None is for ever.

        Raises:
            Interrupted: If the user stopped it.
            TookTooLong: If its time is over.
            Unavailable: If its worker ended.
            ClaimLost: If its claim ended.
        """
        try:
            self._submit(ins)
            if self._is_done_within(limit_s):
                return self._outcome()
            self._stop_late()
        except KeyboardInterrupt:
            return self._stop()
        raise TookTooLong("The cell took longer than its --timeout and was stopped.")

    def _submit(self, ins: Mapping[str, bytes]) -> None:
        client, cell = self._place.client, self._cell
        client.subscribe_topic(cell.topic, self._hear)
        self._future = client.submit(
            run_cell,
            cell,
            self._sent(ins),
            key=f"gpupool-cell-{cell.id}",
            workers=[self._place.address],
            pure=False,
        )
        self._future.add_done_callback(lambda _future: self._mail.put(None))

    def _sent(self, ins: Mapping[str, bytes]) -> Mapping[str, Any]:
        """Results of Dask's that hold these: a graph is no place for what may be large."""
        if not ins:
            return {}
        address = self._place.address
        sent = self._place.client.scatter([*ins.values()], workers=[address], hash=False)
        return dict(zip(ins, sent, strict=True))

    def _hear(self, event: tuple[float, Mapping[str, Any]]) -> None:
        # On the client's loop.
        _, said = event
        if said["cell"] == self._cell.id:
            self._mail.put(said)

    def _is_done_within(self, limit_s: float | None) -> bool:
        began = time.monotonic()
        told_busy = False
        while not self._future.done():
            waited_s = time.monotonic() - began
            if limit_s is not None and waited_s >= limit_s:
                return False
            if not self._heard and not told_busy and waited_s > _SILENT_FOR_S:
                told_busy = True
                self._note("is busy; the cell runs as soon as it can.")
            self._take(min(_LOOK_EVERY_S, limit_s - waited_s if limit_s else _LOOK_EVERY_S))
            self._check_worker()
        return True

    def _take(self, within_s: float) -> None:
        with contextlib.suppress(Empty):
            said = self._mail.get(timeout=within_s)
            if said is not None:
                self._heard += 1
                for stream, text in said.get("said", ()):
                    self._tell(Stream(stream), text)

    def _check_worker(self) -> None:
        if not self._place.is_there and not self._future.done():
            self._future.cancel()
            raise why_ended(self._place.cluster, self._place.worker)

    def _outcome(self) -> Outcome:
        outcome = self._result()
        heard_at = time.monotonic()
        while self._heard < outcome.spoken and time.monotonic() - heard_at < _LAST_WORDS_WITHIN_S:
            before = self._heard
            self._take(_LAST_WORDS_WITHIN_S)
            heard_at = time.monotonic() if self._heard > before else heard_at
        self._beside(self._forget)
        return outcome

    def _result(self) -> Outcome:
        try:
            outcome: Outcome = self._future.result()
        except CancelledError as error:
            if not self._place.is_there:
                raise why_ended(self._place.cluster, self._place.worker) from error
            raise Unavailable(
                "The connection to the claim broke while the cell ran.",
                hint="See why: %gpupool explain",
            ) from error
        return outcome

    # Ending it early

    def _stop(self) -> Outcome:
        """Interrupt it and wait for its end; a second interrupt ends the worker instead."""
        if self._future is None:
            raise Interrupted
        self._ask_to_stop()
        if not self._heard:
            self._future.cancel()
            raise Interrupted
        try:
            if not self._is_done_within(_STOPS_WITHIN_S):
                self._note(
                    "is in a call that cannot be interrupted; interrupt again to restart it."
                )
                self._is_done_within(None)
            return self._outcome()
        except KeyboardInterrupt:
            # It may be over, and only its last words still on their way.
            if not self._future.done():
                self._end_worker()
            raise Interrupted from None

    def _stop_late(self) -> None:
        self._ask_to_stop()
        if not self._heard:
            self._future.cancel()
        elif not self._is_done_within(_STOPS_WITHIN_S):
            self._end_worker()

    def _ask_to_stop(self) -> None:
        self._beside(lambda: self._on_worker(interrupt_cell, self._cell.id))

    def _end_worker(self) -> None:
        self.has_ended_worker = True
        self._future.cancel()
        self._beside(lambda: self._on_worker(end_worker))
        self._note("is restarted; its variables are lost.")

    def _on_worker(self, function: Callable[..., None], *arguments: str) -> None:
        address = self._place.address
        self._place.client.run(function, *arguments, workers=[address], on_error="ignore")

    def _forget(self) -> None:
        self._place.client.run_on_scheduler(forget_topic, self._cell.topic)

    def _beside(self, act: Callable[[], None]) -> None:
        """Do something without waiting for it: a worker that is stuck gives no answer."""

        def do() -> None:
            # Neither does one that has ended; and a client that is closed meanwhile fails in ways
            # of its own, of which nobody can make anything.
            with contextlib.suppress(Exception):
                act()

        threading.Thread(target=do, daemon=True, name="gpupool cell").start()

    def _note(self, text: str) -> None:
        self._tell(Stream.STDERR, f"Worker {self._place.worker} {text}\n")
