"""Whose a claim's processes are: from the manager's word to a user of this host.

Called by `starting`. Only a root agent can start processes for anyone but its own user.
"""

import os
import pwd

from jupyter_gpupool.pool.errors import NotAllowed, NotFound

from .zygotes import Identity


def identity_of(os_user: str | None) -> Identity | None:
    """The user to become, or None for the agent's own.

    Raises:
        NotFound: If this host has no such user.
        NotAllowed: If the agent may not start processes for them.
    """
    if os_user is None:
        return None
    try:
        entry = pwd.getpwnam(os_user)
    except (KeyError, ValueError) as error:
        raise NotFound(
            f"This host has no user {os_user!r}.",
            hint="Make the account here, or ask the pool's admin to map the owner to another.",
        ) from error
    if entry.pw_uid == os.getuid():
        return None
    if os.getuid() != 0:
        raise NotAllowed(
            f"The agent on this host does not run as root, so it cannot start processes"
            f" of {os_user!r}.",
            hint="Run it as root, or claim as the user it runs as.",
        )
    groups = tuple(os.getgrouplist(os_user, entry.pw_gid))
    return Identity(uid=entry.pw_uid, gid=entry.pw_gid, groups=groups)
