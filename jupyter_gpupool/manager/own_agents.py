"""Which agents a manager has started that run: only those does it ever end.

Called by `local_agent`. Their pids and the times they started stand in a file of the manager's, and
each carries that file's path in its environment, for a manager can be killed before it has written,
or its agent has locked.
"""

import contextlib
import fcntl
import logging
import os
import signal
from pathlib import Path

from .private_files import read_private, write_private
from .runtime_file import started_at

_LOG = logging.getLogger(__name__)
MARK = "GPUPOOL_KEPT_BY"


class OwnAgents:
    """The agents of one manager, through its deaths.

    Args:
        record: The file that says which they are.
        state: The agents' state folder, which one of them holds.
    """

    def __init__(self, record: Path, state: Path) -> None:
        self._record = record
        self._state = state
        self._stopped: set[int] = set()

    def write_down(self, pid: int) -> None:
        """One more was started."""
        with contextlib.suppress(OSError):
            lines = [f"{each} {started_at(each)}" for each in {*self.pids(), pid}]
            write_private(self._record, "\n".join(lines))

    def pids(self) -> set[int]:
        """All that run."""
        own = self._marked_holder()
        for line in read_private(self._record).splitlines():
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid, started = map(int, line.split())
                if started_at(pid) == started and _state_of(pid) not in "ZX":
                    own.add(pid)
        return own

    def signal(self, number: signal.Signals) -> bool:
        """Send it to all; whether there are any."""
        own = self.pids()
        for pid in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return bool(own)

    def end_stopped(self) -> None:
        """End those that were stopped at the last look already.

        One would keep its place for ever, and hear nothing; what it has started lives on.
        """
        stopped = {pid for pid in self.pids() if _is_stopped(pid)}
        for pid in stopped & self._stopped:
            _LOG.warning("The agent %d was stopped by somebody, and is replaced", pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._stopped = stopped

    def _marked_holder(self) -> set[int]:
        """The agent that holds the state folder, if its environment says that it is ours."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            holder = int((self._state / "agent.lock").read_text().split()[0])
            environment = Path(f"/proc/{holder}/environ").read_bytes().split(b"\0")
            if os.fsencode(f"{MARK}={self._record}") in environment:
                return {holder} if is_held(self._state) else set()
        return set()


def _state_of(pid: int) -> str:
    """As /proc has it: Z and X have ended, T was stopped by a signal.

    Raises:
        OSError: If there is none of this number.
    """
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return _state_of(pid) == "T"
    return False


def is_held(state: Path) -> bool:
    """Whether an agent holds this state folder."""
    try:
        lock = os.open(state / "agent.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
