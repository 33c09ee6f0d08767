"""Becomes the claim's user for good: after this no way leads back to root, nor to any other right.

Called by `child` between the fork and reading the launch; `zygote` takes its user's name only.
"""

import contextlib
import ctypes
import os
import pwd

from .problems import CannotStart

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38


def become(uid: int, gid: int | None, groups: tuple[int, ...]) -> None:
    """Take on a user, its group, its further groups and its name: the zygote's are another's.

    Raises:
        CannotStart: If this process may not become that user.
    """
    if uid != os.geteuid():
        _switch(uid, uid if gid is None else gid, groups)
        # The kernel hides a process that changed its user from that user; its own tools need it.
        _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    take_name(uid)


def gain_nothing() -> None:
    """Give up gaining any right by running a set-uid program, whoever this process is.

    A process of root's could not be ended by an agent that is not root, and would keep its device.

    Raises:
        CannotStart: If the kernel does not do it.
    """
    if os.getuid() != 0 and _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise CannotStart("the kernel refused no_new_privs.")


def take_name(uid: int) -> None:
    """Set the variables that name a user and their home."""
    os.environ.update(_names_of(uid))


def _names_of(uid: int) -> dict[str, str]:
    with contextlib.suppress(KeyError):
        user = pwd.getpwuid(uid)
        name = user.pw_name
        return {"HOME": user.pw_dir, "USER": name, "LOGNAME": name, "SHELL": user.pw_shell}
    return {"HOME": "/", "USER": str(uid), "LOGNAME": str(uid)}


def _switch(uid: int, gid: int, groups: tuple[int, ...]) -> None:
    try:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise CannotStart(f"this host may not run it as user {uid}: {error.strerror}.") from error
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid) or _can_go_back():
        raise CannotStart(f"user {uid} could have become root again.")


def _can_go_back() -> bool:
    if os.getuid() == 0:
        return False
    for regain in (os.setuid, os.seteuid):
        with contextlib.suppress(OSError):
            regain(0)
            return True
    return False
