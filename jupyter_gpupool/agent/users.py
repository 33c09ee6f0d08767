"""Whose a claim's processes are: from the manager's word to a user of this host.

Called by `starting`. Only a root agent can start processes for anyone but its own user, and it
starts none as root or as a service's account unless its admin says so.
"""

import asyncio
import os
import pwd
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from jupyter_gpupool.pool.errors import NotAllowed, NotFound, Unavailable

from .zygotes import Identity

_KNOWN_FOR_S = 60.0
_ANSWERS_WITHIN_S = 10.0
_MAP = "map the owner to a person's account (jupyter gpupool token create --user … --os-user …)"
_LOGIN_DEFS = Path("/etc/login.defs")
_USUAL_UID_MIN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRules:
    """What a root agent may do.

    Attributes:
        run_claims_as_agent: Run a claim without a user as the agent's own user, also as root.
        allow_system_users: Run claims as users below `uid_min`, root among them.
        uid_min: The lowest uid that is a person's.
    """

    run_claims_as_agent: bool = False
    allow_system_users: bool = False
    uid_min: int = _USUAL_UID_MIN


def identity_of(
    os_user: str | None, rules: UserRules, agent_uid: int | None = None
) -> Identity | None:
    """The user to become, or None for the agent's own. Asks the user directory: may take long.

    Raises:
        NotFound: If this host has no such user.
        NotAllowed: If the agent may not start processes for them.
    """
    agent_uid = os.getuid() if agent_uid is None else agent_uid
    if os_user is None:
        _check_own_user(agent_uid, rules)
        return None
    try:
        entry = pwd.getpwnam(os_user)
    except (KeyError, ValueError) as error:
        raise NotFound(
            f"This host has no user {os_user!r}.",
            hint=f"Make the account here, or ask the pool's admin to {_MAP}.",
        ) from error
    _check_person(entry, agent_uid, rules)
    if entry.pw_uid == agent_uid:
        return None
    if agent_uid != 0:
        raise NotAllowed(
            f"The agent on this host does not run as root, so it cannot start processes"
            f" of {os_user!r}.",
            hint="Run it as root, or claim as the user it runs as.",
        )
    groups = tuple(os.getgrouplist(os_user, entry.pw_gid))
    return Identity(uid=entry.pw_uid, gid=entry.pw_gid, groups=groups)


class Users:
    """Looks users up beside the event loop, and remembers them for a minute.

    A directory service that hangs must not hang the agent, nor keep its threads from other work.
    """

    def __init__(
        self,
        rules: UserRules,
        look_up: Callable[[str | None, UserRules], Identity | None] = identity_of,
        *,
        answers_within_s: float = _ANSWERS_WITHIN_S,
    ) -> None:
        self._rules = rules
        self._look_up = look_up
        self._answers_within_s = answers_within_s
        self._known: dict[str, tuple[Identity | None, float]] = {}
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="users")

    async def identity_of(self, os_user: str | None) -> Identity | None:
        """As the function of this name.

        Raises:
            NotFound, NotAllowed: As there.
            Unavailable: If the user directory does not answer.
        """
        if os_user is None:
            return self._look_up(None, self._rules)
        identity, until_s = self._known.get(os_user, (None, 0.0))
        if time.monotonic() < until_s:
            return identity
        asked = asyncio.get_running_loop().run_in_executor(
            self._threads, self._look_up, os_user, self._rules
        )
        try:
            async with asyncio.timeout(self._answers_within_s):
                identity = await asked
        except TimeoutError as error:
            raise Unavailable(
                f"This host's user directory does not answer for {os_user!r}.",
                hint="Look after its directory service, such as sssd.",
            ) from error
        self._known[os_user] = (identity, time.monotonic() + _KNOWN_FOR_S)
        return identity

    def close(self) -> None:
        """Ask no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def read_uid_min(path: Path = _LOGIN_DEFS) -> int:
    """Where this host's people begin; 1000 where it does not say."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return _USUAL_UID_MIN
    found = [words[1] for line in lines if (words := line.split())[:1] == ["UID_MIN"] and words[1:]]
    return int(found[-1]) if found and found[-1].isdigit() else _USUAL_UID_MIN


def _check_own_user(agent_uid: int, rules: UserRules) -> None:
    if agent_uid == 0 and not rules.run_claims_as_agent:
        raise NotAllowed(
            "The agent on this host runs as root, and starts no claim as root.",
            hint="Have the manager run claims as their users, or start the agent"
            " with --run-claims-as-agent.",
        )


def _check_person(entry: pwd.struct_passwd, agent_uid: int, rules: UserRules) -> None:
    if agent_uid != 0 or rules.allow_system_users or entry.pw_uid >= rules.uid_min:
        return
    raise NotAllowed(
        f"The user {entry.pw_name!r} is a system account of this host (uid {entry.pw_uid}), and no"
        " claim may run as one.",
        hint=f"Let the pool's admin {_MAP}, or set AgentApp.allow_system_users.",
    )
