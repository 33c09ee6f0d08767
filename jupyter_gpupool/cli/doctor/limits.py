"""Does the system let a pool have enough open files and processes?"""

import resource
from collections.abc import Iterator

from .finding import Finding, problem, warning, well
from .sight import Sight

_FILES_LITTLE, _FILES_TOO_FEW = 4096, 512
"""A manager or an agent takes all that is allowed, some for each connection and process."""
_PROCESSES_LITTLE, _PROCESSES_TOO_FEW = 512, 64
"""Threads count too: a worker has about ten."""
_MEND = "Raise it in /etc/security/limits.conf, or in the unit of the service, and log in anew."


def check_limits(_sight: Sight) -> Iterator[Finding]:
    """Read this process's limits, which what it starts inherits."""
    yield judge_open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield judge_processes(resource.getrlimit(resource.RLIMIT_NPROC)[0])


def judge_open_files(hard: int) -> Finding:
    """The hard limit counts, for the services raise their own up to it."""
    reference = "open-files-limit"
    return _judge(hard, _FILES_LITTLE, _FILES_TOO_FEW, reference, "open files (nofile)")


def judge_processes(soft: int) -> Finding:
    """The soft limit counts, for nobody raises it."""
    reference = "processes-limit"
    return _judge(soft, _PROCESSES_LITTLE, _PROCESSES_TOO_FEW, reference, "processes (nproc)")


def _judge(limit: int, little: int, too_few: int, reference: str, of_what: str) -> Finding:
    if limit == resource.RLIM_INFINITY:
        return well(reference, f"There is no limit of {of_what}.")
    what = f"The limit of {of_what} is {limit}"
    if limit < too_few:
        return problem(f"{reference}-too-low", f"{what}: a pool cannot run with it.", _MEND)
    if limit < little:
        return warning(f"{reference}-low", f"{what}: enough for a few workers alone.", _MEND)
    return well(reference, f"{what}.")
