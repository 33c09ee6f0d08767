"""One pool a user: an embedded manager that finds another in its state folder tells of that one.

Called by `app`. A user's Jupyter servers may have a runtime folder each, so their first clients see
neither each other's lock nor runtime file, and each starts a manager; and one may start just when
the last manager is ending. The state folder is the same for all of them, and whose it is decides.
"""

import time
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.runtime_file import RuntimeFile

from .private_files import read_private, write_private
from .runtime_file import started_at
from .state_folder import InUse, StateFolder

BESIDE_STATE = "runtime.json"
"""The runtime file's copy in the state folder."""
_WITHIN_S = 25.0
"""Less than a client waits, and more than a manager takes to start or to end."""
_LOOK_EVERY_S = 0.05


def take_or_join(state: Path, runtime_file: Path) -> StateFolder | None:
    """The state folder, once it is free; None if its manager is in `runtime_file` now.

    Raises:
        Unavailable: If it cannot be used, or its manager neither answers for it nor ends.
    """
    deadline_s = time.monotonic() + _WITHIN_S
    while True:
        try:
            return StateFolder(state)
        except InUse:
            if _is_told_of(state / BESIDE_STATE, runtime_file):
                return None
            if time.monotonic() > deadline_s:
                raise
        time.sleep(_LOOK_EVERY_S)


def _is_told_of(beside: Path, runtime_file: Path) -> bool:
    """Put the runtime file of a manager that runs where this one's clients look."""
    text = read_private(beside)
    try:
        told = RuntimeFile.model_validate_json(text)
        if started_at(told.manager_pid) != told.manager_started:
            return False
        runtime_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (ValueError, OSError):
        return False
    try:
        write_private(runtime_file, text)
    except OSError as error:
        raise Unavailable(
            f"The runtime file {runtime_file} cannot be written: {error.strerror}.",
            hint="Make room or change its folder's rights, or choose another with --runtime-file.",
        ) from error
    return True
