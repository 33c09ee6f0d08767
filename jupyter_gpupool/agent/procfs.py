"""What /proc says of this host's processes: identity, kin, memory, marks.

Called by everything in the agent that has to know whose a process is. Each function returns
nothing for a process that has gone meanwhile, for that is the normal end of every process.
"""

import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_DEAD = frozenset("ZXx")
_COMMAND_LENGTH = 60
_OUR_VARIABLES = b"GPUPOOL_"


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process for all time: a pid comes back, a pid with its start time does not."""

    pid: int
    started_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One line of the process table."""

    id: ProcessId
    parent: int
    session: int
    state: str
    rss_bytes: int

    @property
    def is_dead(self) -> bool:
        """Whether it has ended and only waits to be collected."""
        return self.state in _DEAD

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped and answers no signal but SIGCONT and SIGKILL."""
        return self.state in "Tt"


def read_row(pid: int) -> ProcessRow | None:
    """Read one process, or None if there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The command may hold spaces and brackets; the last bracket ends it.
    fields = text[text.rindex(")") + 2 :].split()
    return ProcessRow(
        id=ProcessId(pid, int(fields[19])),
        parent=int(fields[1]),
        session=int(fields[3]),
        state=fields[0],
        rss_bytes=int(fields[21]) * _PAGE_BYTES,
    )


def read_rows() -> dict[int, ProcessRow]:
    """Read the whole table, without those that are dead already."""
    rows = (read_row(pid) for pid in all_pids())
    return {row.id.pid: row for row in rows if row is not None and not row.is_dead}


def all_pids() -> Iterator[int]:
    """Every pid there is right now."""
    return (int(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208 - far faster


def started_at(pid: int) -> int | None:
    """When the process of this number started, in ticks since boot; None if none runs."""
    row = read_row(pid)
    return None if row is None or row.is_dead else row.id.started_ticks


def machine_id() -> str:
    """Names this machine's installation; "" if it has no name."""
    try:
        return Path("/etc/machine-id").read_text(errors="replace").strip()
    except OSError:
        return ""


def is_alive(process: ProcessId) -> bool:
    """Whether this very process still runs."""
    row = read_row(process.pid)
    return row is not None and row.id == process and not row.is_dead


def environment_of(pid: int) -> Mapping[str, str]:
    """The environment a process was started with; empty where we may not look."""
    try:
        raw = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition("=") for item in raw.decode(errors="replace").split("\0") if item)
    return {name: value for name, _, value in pairs}


def marks_of(pid: int) -> Mapping[str, str]:
    """As `environment_of`, of our own variables alone: it is asked of every process there is."""
    try:
        raw = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    if _OUR_VARIABLES not in raw:
        return {}
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if item.startswith(_OUR_VARIABLES))
    return {name.decode(): value.decode(errors="replace") for name, _, value in pairs}


def output_of(pid: int) -> frozenset[str]:
    """The files behind a process's standard output and error; empty where we may not look."""
    paths = set()
    for descriptor in (1, 2):
        try:
            paths.add(os.readlink(_PROC / str(pid) / "fd" / str(descriptor)))  # noqa: PTH115 - text
        except OSError:
            continue
    return frozenset(paths)


def user_of(pid: int) -> int | None:
    """The user id a process runs as."""
    try:
        return (_PROC / str(pid)).stat().st_uid
    except OSError:
        return None


def real_user_of(pid: int) -> int | None:
    """The user who started a process, whatever it has become by a program's own rights."""
    try:
        lines = (_PROC / str(pid) / "status").read_bytes().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(b"Uid:")), None)


def describe(pid: int) -> tuple[str, str]:
    """User and command of a process, for people. Arguments stay out: they may hold secrets."""
    uid = user_of(pid)
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = [""]
    return _user_name(uid), Path(words[0]).name[:_COMMAND_LENGTH]


def rss_with_children(pid: int) -> int:
    """Resident bytes of a process and all its descendants; 0 once it is gone."""
    row = read_row(pid)
    if row is None or row.is_dead:
        return 0
    return row.rss_bytes + sum(rss_with_children(child) for child in _children_of(pid))


def pss_with_children(pid: int) -> int:
    """As `rss_with_children`, with each shared page counted once. Slow: it walks all pages."""
    row = read_row(pid)
    if row is None or row.is_dead:
        return 0
    return _pss(pid) + sum(pss_with_children(child) for child in _children_of(pid))


def _pss(pid: int) -> int:
    """Its proportional share; of a process we may not look into, all that it does not map."""
    for file, field in (("smaps_rollup", "Pss:"), ("status", "RssAnon:")):
        try:
            lines = (_PROC / str(pid) / file).read_text().splitlines()
        except PermissionError:
            continue
        except (FileNotFoundError, ProcessLookupError):
            break
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
    return 0


def boot_id() -> str:
    """Names this run of the kernel: process identities of another one mean nothing."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _children_of(pid: int) -> list[int]:
    children: list[int] = []
    try:
        threads = os.listdir(_PROC / str(pid) / "task")  # noqa: PTH208 - far faster
        for thread in threads:
            text = (_PROC / str(pid) / "task" / thread / "children").read_text()
            children += map(int, text.split())
    except OSError:
        return children
    return children


@lru_cache(maxsize=1024)
def _user_name(uid: int | None) -> str:
    # Cached, for a directory service may take long to answer.
    if uid is None:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
