"""Does the file by which a user's own pool is found tell of a manager that runs here and now?"""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from pydantic import ValidationError

from jupyter_gpupool.client.discovery import runtime_file
from jupyter_gpupool.client.this_host import ThisHost
from jupyter_gpupool.pool.errors import NotAllowed, NotFound
from jupyter_gpupool.protocol.private_file import read_private
from jupyter_gpupool.protocol.runtime_file import RuntimeFile

from .finding import Finding, note, problem, warning, well
from .sight import Sight


class FileState(Enum):
    """What the file tells of; the value completes "The runtime file PATH …"."""

    NOTHING = "is not there: your own pool does not run"
    RUNNING = "tells of your own pool's manager, which runs"
    GONE = "is stale: the manager that wrote it has gone"
    OTHER_BOOT = "is stale: it was written before this machine was started"
    OTHER_HOST = "was written on another host"
    OTHER_USER = "was written by another user's manager"
    DAMAGED = "is damaged: it is no text of a manager"


def check_runtime_file(_sight: Sight) -> Iterator[Finding]:
    """Read the file as clients do, and say why they would not use it."""
    path = runtime_file()
    try:
        told = told_by(path)
    except NotAllowed as error:
        yield problem("runtime-file-open", error.message, error.hint or f"Remove it: rm {path}")
    else:
        yield judge_runtime_file(told, path)


def judge_runtime_file(told: FileState, path: Path) -> Finding:
    """Whatever is stale is never used, and the next use replaces it; a damaged one is odd."""
    what = f"The runtime file {path} {told.value}."
    mend = f"Nothing; the next use replaces it. To be rid of it now: rm {path}"
    if told in (FileState.NOTHING, FileState.RUNNING):
        return well("runtime-file", what)
    if told is FileState.DAMAGED:
        return warning("runtime-file-damaged", what, f"{mend}; see whether its disk was full.")
    return note("runtime-file-stale", what, mend)


def told_by(path: Path) -> FileState:
    """What the file tells of.

    Raises:
        NotAllowed: If others could have read or written it.
    """
    try:
        said = RuntimeFile.model_validate_json(read_private(path, what="runtime file"))
    except NotFound:
        return FileState.NOTHING
    except ValidationError:
        return FileState.DAMAGED
    return _compare(said, ThisHost.read())


def _compare(said: RuntimeFile, host: ThisHost) -> FileState:
    if said.host != host.mark:
        return FileState.OTHER_HOST
    if said.uid != host.uid:
        return FileState.OTHER_USER
    if said.boot_id != host.boot_id:
        return FileState.OTHER_BOOT
    return FileState.RUNNING if host.runs(said) else FileState.GONE
