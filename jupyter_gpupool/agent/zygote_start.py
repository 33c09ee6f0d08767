"""How a zygote's process is started, and what it wrote since. Called by `zygote_process`."""

import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable

from .log_ends import last_lines

_MOST_LOG_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ZygoteCommand:
    """How a zygote is started.

    Attributes:
        user: Whom it runs as; None is the agent's own user.
        environ: Its whole environment.
    """

    arguments: tuple[str, ...]
    user: int | None
    group: int | None
    groups: tuple[int, ...]
    environ: Mapping[str, str]
    log: Path


@dataclass(frozen=True, slots=True)
class LogSince:
    """A log from some place on: what came before is an earlier zygote's."""

    path: Path
    start: int

    def last_lines(self) -> str:
        """Its end on one line, for a reason; "" if there is nothing."""
        return last_lines(self.path, since=self.start)


@dataclass(frozen=True, slots=True)
class Started:
    """A zygote's process.

    Attributes:
        user: Whom it runs as; None is the agent's own user, or all that it forks for.
        pidfd: Readable when it has ended; the holder closes it.
    """

    user: int | None

    process: subprocess.Popen[bytes]
    pidfd: int
    link: socket.socket
    log: LogSince

    def give_up(self) -> None:
        """End it, for nobody is there any more to hear it."""
        self.process.kill()
        self.process.wait()
        self.link.close()
        os.close(self.pidfd)


def start(command: ZygoteCommand) -> Started:
    """Start it. May take long, for its interpreter may be on a file system that hangs.

    Raises:
        Unavailable: If this host cannot, for want of a file, a right or room.
    """
    try:
        return _start(command)
    except OSError as error:
        raise Unavailable(
            f"The zygote of this host cannot be started: {error.strerror}.",
            hint=f"Check that {command.arguments[0]} exists and may be run.",
        ) from error


def _start(command: ZygoteCommand) -> Started:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    log = os.open(command.log, flags, 0o600)
    try:
        since = LogSince(command.log, _cut(log))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                process = _popen(command, theirs, log)
            except BaseException:
                ours.close()
                raise
    finally:
        os.close(log)
    return Started(command.user, process, _pidfd_of(process, ours), ours, since)


def _cut(log: int) -> int:
    """Empty a log that has grown too large; its size now."""
    if os.fstat(log).st_size > _MOST_LOG_BYTES:
        os.ftruncate(log, 0)
    return os.fstat(log).st_size


def _popen(command: ZygoteCommand, link: socket.socket, log: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the interpreter is the admin's
        [*command.arguments, str(link.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(link.fileno(),),
        env=dict(command.environ),
        cwd="/",
        # The terminal's Ctrl-C is for the agent alone.
        start_new_session=True,
        user=command.user,
        group=command.group,
        extra_groups=command.groups if command.user is not None else None,
    )


def _pidfd_of(process: subprocess.Popen[bytes], link: socket.socket) -> int:
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        link.close()
        process.kill()
        process.wait()
        raise
