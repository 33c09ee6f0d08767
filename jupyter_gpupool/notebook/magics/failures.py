"""How a magic ends when it does not succeed: IPython shows each of these without our own frames.

Raised by `calling` and `remote`. A user's mistake is an IPython UsageError: one line on stderr.
"""

from .cell import Raised


class CellFailed(Exception):
    """The cell raised an error on its worker."""

    def __init__(self, raised: Raised, worker: str) -> None:
        super().__init__(f"{raised.kind} on worker {worker}: {raised.text}")
        self._raised = raised

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the cell's own frames."""
        return self._raised.traceback.splitlines()


class Interrupted(KeyboardInterrupt):
    """The user has interrupted the magic, and it has stopped."""

    def __init__(self, raised: Raised | None = None) -> None:
        super().__init__()
        self._lines = ["KeyboardInterrupt"] if raised is None else raised.traceback.splitlines()

    def _render_traceback_(self) -> list[str]:
        return self._lines


# It is shown by its name, and is the same to whoever reads it.
Interrupted.__name__ = KeyboardInterrupt.__name__
