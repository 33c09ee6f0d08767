"""How many files the manager may have open, and what the agent it keeps gets of that.

Called by `serving` at the start and by `local_agent` for its child. Each connection costs the
manager a descriptor, and the usual soft limit of 1024 is no host's real one.
"""

import contextlib
import resource

Limit = tuple[int, int]
_MOST = 1 << 20


def raise_limit() -> Limit:
    """Use all that the host allows; returns what the manager was started with."""
    given = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return given


def give_limit(pid: int, given: Limit) -> None:
    """Let a child have what the manager was started with: its own children get that from it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, given)
