"""The agent's state folder: what is where, who the host is, and that only one agent uses it.

Opened once by `app`. Everything in it belongs to the agent, but for the claims' working folders.
"""

import fcntl
import os
import stat
import uuid
from dataclasses import dataclass
from pathlib import Path

from jupyter_gpupool.pool.errors import Conflict, NotAllowed, Unavailable
from jupyter_gpupool.pool.ids import ClaimId, HostId

from .keys import ProcessKey

_HOST_ID_LENGTH = 64


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Where the agent keeps what has to outlive it."""

    path: Path

    @property
    def running(self) -> Path:
        """Records of processes."""
        return self.path / "running"

    @property
    def has_records(self) -> bool:
        """Whether an agent left processes here that nobody has looked at since."""
        return any(self.running.glob("*.json"))

    @property
    def claims(self) -> Path:
        """Working folders of claims."""
        return self.path / "claims"

    @property
    def logs(self) -> Path:
        """Output of claims' processes, a folder a claim."""
        return self.path / "logs"

    @property
    def leftovers(self) -> Path:
        """What is known of what claims leave on the host. Made when there is any."""
        return self.path / "leftovers"

    @property
    def package(self) -> Path:
        """Where other environments find our package."""
        return self.path / "package"

    @property
    def socket(self) -> Path:
        """Where forked processes find their agent."""
        return self.path / "agent.sock"

    def claim(self, claim_id: ClaimId) -> Path:
        """A claim's working folder."""
        return self.claims / claim_id

    def log(self, key: ProcessKey) -> Path:
        """A process's output."""
        return self.logs / key.claim_id / key.log_name


def open_state_folder(path: Path) -> StateFolder:
    """Make the folder and what belongs in it.

    Raises:
        NotAllowed: If others could change what is in it: it names processes to be ended.
        Unavailable: If it cannot be made or written.
    """
    folder = StateFolder(path)
    # Users of claims have to get through to their working folder and to the socket.
    mode = 0o711 if os.getuid() == 0 else 0o700
    try:
        _make_parents(path, mode)
        for each, each_mode in (
            (path, mode),
            (folder.running, 0o700),
            (folder.claims, mode),
            (folder.logs, 0o700),
            # Users' own zygotes load our package from it: nobody else may have made it.
            (folder.package, 0o755),
        ):
            _make_own(each, each_mode)
        _check_writable(folder)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return folder


def take_lock(folder: StateFolder) -> int:
    """Take the folder for this process, for as long as the descriptor given back stays open.

    Raises:
        Conflict: If another agent has it; the sentence names its pid.
        Unavailable: If there is something else in its place, or no room.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    path = folder.path / "agent.lock"
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise Unavailable(
            f"The agent cannot open {path}: {error.strerror}.", hint="Look after its state folder."
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise Conflict(
            f"An agent with pid {holder} already uses the state folder {folder.path}.",
            hint="One agent a host is enough; give a second one its own --state.",
        ) from error
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        os.close(descriptor)
        raise _cannot_write(folder, error) from error
    return descriptor


def _cannot_write(folder: StateFolder, error: OSError) -> Unavailable:
    return Unavailable(
        f"The agent cannot write its state folder {folder.path}: {error.strerror}.",
        hint="Make room or make it writable, or choose another one with --state.",
    )


def read_host_id(folder: StateFolder) -> HostId:
    """The host's name for all time, made at first use.

    Raises:
        Unavailable: If the file is damaged, for with another name what runs here would be lost; or
            if there is no room for it.
    """
    path = folder.path / "host-id"
    if not path.exists():
        try:
            write_whole(path, f"host-{uuid.uuid4().hex[:12]}\n".encode())
        except OSError as error:
            raise _cannot_write(folder, error) from error
    text = path.read_text(errors="replace").strip()
    if not text or len(text) > _HOST_ID_LENGTH or not text.replace("-", "").isalnum():
        raise Unavailable(
            f"The file {path} does not hold a host's id.",
            hint="Restore it, or remove it to join as a new host.",
        )
    return HostId(text)


def write_whole(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file so that it is seen whole or not at all; with `sync` even after a power cut."""
    draft = path.with_name(f".{path.name}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
            file.write(content)
            if sync:
                file.flush()
                os.fsync(descriptor)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _make_parents(path: Path, mode: int) -> None:
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir()
            # Whatever the umask is: users of claims have to get through.
            parent.chmod(mode)


def _make_own(path: Path, mode: int) -> None:
    path.mkdir(exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise NotAllowed(
            f"The agent's state folder {path} is not a folder of the agent's own user.",
            hint="Choose another one with --state.",
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and any(path.iterdir()):
        raise NotAllowed(
            f"Others may write the agent's state folder {path}.",
            hint=f"If you trust what is in it: chmod go-w {path}",
        )
    path.chmod(mode)


def _check_writable(folder: StateFolder) -> None:
    write_whole(folder.running / ".probe", b"")
    (folder.running / ".probe").unlink()
