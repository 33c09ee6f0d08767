"""How many files the agent may have open, and what its children get of that.

Called by `app` at the start and by `starting` for each child. Each process costs the agent a few
descriptors, and the usual soft limit of 1024 is no host's real one.
"""

import logging
import resource

logger = logging.getLogger(__name__)

_MOST = 1 << 20


class OpenFiles:
    """The agent's limit, and the one it was started with.

    Attributes:
        given: What it was started with; children get that back.
    """

    def __init__(self) -> None:
        self.given = resource.getrlimit(resource.RLIMIT_NOFILE)

    def raise_limit(self) -> None:
        """Use all that the host allows."""
        soft, hard = self.given
        wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    def give(self, pid: int) -> None:
        """Let a child have what the agent was started with."""
        try:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, self.given)
        except (ProcessLookupError, PermissionError) as error:
            logger.debug("Process %d keeps its limit of open files: %s", pid, error)
