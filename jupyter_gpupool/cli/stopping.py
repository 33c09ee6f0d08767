"""Lets SIGTERM and SIGHUP end a command as Ctrl-C does: through its clean-up.

Used by `holding`, whose claim must not outlive a closed terminal; `root` makes the exit status.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asked this command to end.

    Attributes:
        signum: Which.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise Stopped in the block at the first such signal; later ones change nothing."""
    # What is ignored stays so: that is what nohup is for.
    heeded = [signum for signum in _SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN]
    before = {signum: signal.signal(signum, _stop) for signum in heeded}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _stop(signum: int, _frame: FrameType | None) -> None:
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(signum)
