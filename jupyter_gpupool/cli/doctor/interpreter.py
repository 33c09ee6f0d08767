"""Can other users read this Python? Those for whom a root agent runs claims have to."""

import os
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import jupyter_gpupool

from .finding import Finding, note, warning, well
from .sight import Sight


def check_interpreter(_sight: Sight) -> Iterator[Finding]:
    """Look at the way to the interpreter and to its packages."""
    closed = closed_to_others(
        [
            Path(sys.executable),
            Path(sys.executable).resolve(),
            Path(sys.prefix),
            Path(sysconfig.get_path("purelib")),
            Path(sysconfig.get_path("stdlib")),
            Path(jupyter_gpupool.__file__).parent,
        ]
    )
    yield judge_interpreter(closed, is_root=os.geteuid() == 0)


def judge_interpreter(closed: Path | None, *, is_root: bool) -> Finding:
    """It matters to root, whose agent runs claims as their users, and hardly to anybody else."""
    if closed is None:
        return well("interpreter", f"All users of this machine can run {sys.executable}.")
    what = f"Other users of this machine cannot run this Python: {closed} is closed to them."
    if not is_root:
        mend = f"Nothing for yourself; to serve others: chmod o+rX {closed}"
        return note("interpreter-closed", what, mend)
    mend = f"Install it outside of private folders, such as in /opt, or run: chmod o+rX {closed}"
    return warning("interpreter-closed", what, mend)


def closed_to_others(paths: Iterable[Path]) -> Path | None:
    """The first path that users who are neither owner nor in the group cannot read or pass."""
    for path in paths:
        for above in reversed(path.parents):
            if not above.stat().st_mode & stat.S_IXOTH:
                return above
        mode = path.stat().st_mode
        needed = stat.S_IROTH | stat.S_IXOTH
        if mode & needed != needed:
            return path
    return None
