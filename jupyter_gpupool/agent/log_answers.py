"""Answers the manager's question for the last lines of a claim's processes.

Called by `host`. Control characters are sent as they are: whoever shows them knows his terminal.
"""

import os
import stat

from jupyter_gpupool.protocol.launch import Role
from jupyter_gpupool.protocol.link import MOST_LOG_CHARACTERS, LogAnswer, LogQuery
from jupyter_gpupool.protocol.using import ProcessLog

from .keys import log_name_of
from .state_folder import StateFolder

_MOST_BYTES = 256 * 1024
"""Of one log: a process that writes without a line's end must not fill the answer."""
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def answer_logs(query: LogQuery, folder: StateFolder, host: str) -> LogAnswer:
    """The last lines of those processes of which something is kept. Reads from disk."""
    if not query.processes:
        return LogAnswer(id=query.id)
    most_bytes = min(_MOST_BYTES, MOST_LOG_CHARACTERS // len(query.processes))
    try:
        claim = os.open(folder.logs / query.claim_id, _FOLDER)
    except OSError:
        return LogAnswer(id=query.id)
    try:
        found = [_log(process, claim, query.lines, most_bytes) for process in query.processes]
    finally:
        os.close(claim)
    kept = (log.model_copy(update={"host": host}) for log in found if log is not None)
    return LogAnswer(id=query.id, logs=tuple(kept))


def _log(process: str, claim: int, lines: int, most_bytes: int) -> ProcessLog | None:
    try:
        text = _end_of(_file_of(process), claim, most_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        return ProcessLog(process=process, host="", problem=f"No log: {error.strerror}.")
    return ProcessLog(process=process, host="", lines=tuple(text.split("\n")[-lines:]))


def _file_of(process: str) -> str:
    return log_name_of(None if process == Role.SCHEDULER else process)


def _end_of(name: str, claim: int, most_bytes: int) -> str:
    """The end of a log, in whole lines, without the last line's own end."""
    with open(os.open(name, _FILE, dir_fd=claim), "rb") as file:  # noqa: PTH123 - a descriptor
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no file")
        is_cut = status.st_size > most_bytes
        file.seek(max(0, status.st_size - most_bytes))
        text = file.read(most_bytes).decode(errors="replace")
    # What was cut within its first line, or within a letter of it, tells less than nothing.
    whole = text.partition("\n")[2] if is_cut and "\n" in text else text
    return whole.removesuffix("\n")
