"""The host's zygotes: which one forks for whom, and another one when one has died.

Called by the agent to start schedulers and workers. A root agent whose Python environment only
root can write needs one zygote, which becomes each user after the fork; else every user gets a
zygote that runs as that user, for loading a user's files is running that user's code.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.launch import Fork, Launch, Warm

from .own_thread import in_own_thread
from .trusted_paths import first_untrusted, look_at
from .zygote_command import LIBRARIES, NO_HOME, TUNED, environ_for, program
from .zygote_logs import zygote_log
from .zygote_process import NotSent, ZygoteProcess
from .zygote_start import Started, ZygoteCommand, start

logger = logging.getLogger(__name__)

_LOOKED_AT_WITHIN_S = 120.0
_STARTED_WITHIN_S = 20.0
_WARM_WITHIN_S = 60.0
_FORK_WITHIN_S = 10.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_ENDS_WITHIN_S = 2.0
_IDLE_KEPT_S = 300.0
"""A user's own zygote holds 150 MB: it goes when its user has had nothing for that long."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose process a child becomes."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


NOBODY = Identity(65534, 65534)
"""Who may do nothing and owns nothing."""


@dataclass(slots=True)
class _Slot:
    """One user's place for a zygote, through deaths.

    Attributes:
        identity: Whose it is; None for the agent's own user, or for all.
        idle: Set while nothing of its user's is left.
    """

    identity: Identity | None
    process: ZygoteProcess | None = None
    starting: asyncio.Task[Warm] | None = None
    warm: Warm | None = None
    pause_s: float = 0.0
    retry: asyncio.TimerHandle | None = None
    idle: asyncio.TimerHandle | None = None

    @property
    def user(self) -> int:
        """Whom it runs as."""
        return os.geteuid() if self.identity is None else self.identity.uid

    def forget_timers(self) -> None:
        """Nothing more is to happen to it by itself."""
        for timer in (self.retry, self.idle):
            if timer is not None:
                timer.cancel()


class Zygotes:
    """Forks children through warm zygotes.

    Args:
        interpreter: The Python of the environment they run in.
        log_folder: Where a zygote's own output goes; exists.
        name: The environment's, for its logs.
        package_folder: Where our own package is taken from; None if the environment brings it.
        may_share: Whether one zygote may fork for several users.
        is_kept: Whether one that has died is started again before anybody asks for it.
        exited: Called with (pid, status) when a child has ended and its zygote saw it: `status` is
            an exit code, or -N for signal N. A child whose zygote died first is not told of.
        spares: Children to keep forked ahead, 25 MB each; a user's own zygote keeps none.
    """

    def __init__(
        self,
        *,
        interpreter: Path,
        log_folder: Path,
        exited: Callable[[int, int], None],
        spares: int = 0,
        name: str = "default",
        package_folder: Path | None = None,
        may_share: bool = True,
        is_kept: bool = True,
    ) -> None:
        self._interpreter = interpreter
        self._name = name
        self._package_folder = package_folder
        self._is_kept = is_kept
        self._spares = spares
        self._log_folder = log_folder
        self._exited = exited
        self._slots: dict[Identity | None, _Slot] = {}
        self._is_closed = False
        self._given_up: set[asyncio.Task[None]] = set()
        self._asked = 0
        self._may_share = may_share
        self._look: asyncio.Task[Path | None] | None = None

    async def warm(self, identity: Identity | None) -> Warm:
        """Have a zygote for that user, started if need be; None is the agent's own user.

        Raises:
            Unavailable: If there can be none; the message holds its last lines.
        """
        self._asked += 1
        try:
            return await self._warm(await self._slot_for(identity))
        finally:
            self._asked -= 1

    async def _warm(self, slot: _Slot) -> Warm:
        if self._is_closed:
            raise Unavailable("This environment has just been given up.", hint="Try again.")
        self._note_use(slot)
        if slot.process is not None and slot.warm is not None and not slot.process.is_gone:
            return slot.warm
        if slot.starting is None:
            slot.starting = asyncio.create_task(self._start(slot))
        # Shielded: one caller that gives up must not take the zygote from the others.
        return await asyncio.shield(slot.starting)

    async def fork(
        self, launch: Launch, *, identity: Identity | None, log_fd: int, lock_fds: tuple[int, ...]
    ) -> int:
        """Start a scheduler or worker as that user.

        Returns:
            Its pid. The process may already have ended; `exited` is called after this returned.

        Raises:
            Unavailable: If there is no such process; the message holds the zygote's last lines.
        """
        try:
            return await self._fork_once(launch, identity, log_fd, lock_fds)
        except NotSent:
            return await self._fork_once(launch, identity, log_fd, lock_fds)

    async def _fork_once(
        self, launch: Launch, identity: Identity | None, log_fd: int, lock_fds: tuple[int, ...]
    ) -> int:
        warm = await self.warm(identity)
        if warm.problem:
            raise Unavailable(
                "This host cannot start processes.", hint=f"Its zygote: {warm.problem}"
            )
        slot = await self._slot_for(identity)
        assert slot.process is not None
        return await slot.process.fork(
            _request(slot, identity),
            launch,
            log_fd=log_fd,
            lock_fds=lock_fds,
            deadline_s=_FORK_WITHIN_S,
        )

    async def close(self) -> None:
        """End the zygotes, those that hang as well: they hold nothing. Their children live on."""
        self._is_closed = True
        if self._look is not None:
            self._look.cancel()
        starting = [slot.starting for slot in self._slots.values() if slot.starting is not None]
        for slot in self._slots.values():
            slot.forget_timers()
            if slot.starting is not None:
                slot.starting.cancel()
            if slot.process is not None:
                slot.process.kill()
        await asyncio.gather(*starting, return_exceptions=True)
        if self._given_up:
            # Once nobody is there to hear of it, one that is still being started would stay.
            await asyncio.wait(self._given_up, timeout=_ENDS_WITHIN_S)
        ended = (s.process.ended(_ENDS_WITHIN_S) for s in self._slots.values() if s.process)
        await asyncio.gather(*ended)

    @property
    def pids(self) -> tuple[int, ...]:
        """The zygotes that run."""
        processes = (slot.process for slot in self._slots.values())
        return tuple(p.pid for p in processes if p is not None and not p.is_gone)

    @property
    def logs(self) -> tuple[Path, ...]:
        """Where those write to that run or are being started."""
        slots = self._slots.values()
        return tuple(
            self._log(slot)
            for slot in slots
            if slot.starting or (slot.process is not None and not slot.process.is_gone)
        )

    @property
    def is_used(self) -> bool:
        """Whether a zygote is asked for, is being started or forks, or a child of one lives."""
        slots = self._slots.values()
        return self._asked > 0 or any(
            s.starting or (s.process is not None and s.process.is_used) for s in slots
        )

    async def speaks_for_all(self, identity: Identity | None) -> bool:
        """Whether what that user's zygote says holds for whoever else comes."""
        return (await self._slot_for(identity)).identity is None

    async def _slot_for(self, identity: Identity | None) -> _Slot:
        own = os.geteuid()
        uid = own if identity is None else identity.uid
        if own not in (uid, 0):
            raise Unavailable(
                f"This host's agent runs as user {own} and cannot start processes of user {uid}.",
                hint="Run the agent as root, or claim as the agent's own user.",
            )
        shared = uid == own or await self._shares()
        # Further groups are part of it: a user who was given one gets a new zygote.
        whose = None if shared else identity
        return self._slots.setdefault(whose, _Slot(whose))

    def _note_use(self, slot: _Slot) -> None:
        if slot.identity is None:
            return
        if slot.idle is not None:
            slot.idle.cancel()
        slot.idle = asyncio.get_running_loop().call_later(_IDLE_KEPT_S, self._drop_idle, slot)

    def _drop_idle(self, slot: _Slot) -> None:
        """Let a user's own zygote go; one with children stays, to tell how they end."""
        if slot.starting is not None or (slot.process is not None and slot.process.children):
            self._note_use(slot)
            return
        del self._slots[slot.identity]
        slot.forget_timers()
        if slot.process is not None:
            slot.process.kill()

    def _note_exit(self, slot: _Slot, pid: int, status: int) -> None:
        # Counted from the last of its children's ends.
        self._note_use(slot)
        self._exited(pid, status)

    async def _shares(self) -> bool:
        if not self._may_share:
            return False
        if self._look is None or (self._look.done() and self._look.exception() is not None):
            self._look = asyncio.create_task(self._look_for_untrusted())
        # One look for all that come together: an environment has a hundred thousand files.
        return await asyncio.shield(self._look) is None

    async def _look_for_untrusted(self) -> Path | None:
        try:
            async with asyncio.timeout(_LOOKED_AT_WITHIN_S):
                found = await in_own_thread(partial(_first_untrusted, self._interpreter))
        except TimeoutError as error:
            raise Unavailable(
                f"The files of {self._interpreter} cannot be looked at: their disk does not answer."
            ) from error
        if found is not None:
            logger.warning(
                "%s is not root's alone, so each user gets a zygote of their own.", found
            )
        return found

    async def _start(self, slot: _Slot) -> Warm:
        try:
            slot.warm = None
            slot.process = ZygoteProcess(
                await self._started(slot),
                exited=partial(self._note_exit, slot),
                gone=partial(self._replace, slot),
            )
            slot.warm = await slot.process.warm(_WARM_WITHIN_S)
            slot.pause_s = 0.0
            if slot.warm.problem and not self._is_kept:
                # It is of no use, and what it lacks may be installed the next time.
                slot.process.kill()
            return slot.warm
        finally:
            slot.starting = None

    async def _started(self, slot: _Slot) -> Started:
        starting = in_own_thread(partial(start, self._command(slot)), undo=Started.give_up)
        try:
            async with asyncio.timeout(_STARTED_WITHIN_S):
                return await asyncio.shield(starting)
        except (TimeoutError, asyncio.CancelledError) as given_up:
            giving_up = asyncio.create_task(_give_up(starting))
            self._given_up.add(giving_up)
            giving_up.add_done_callback(self._given_up.discard)
            if isinstance(given_up, asyncio.CancelledError):
                raise
            raise Unavailable(
                "The zygote of this host cannot be started: its disk does not answer.",
                hint=f"Look after the disk of {self._interpreter}.",
            ) from None

    def _replace(self, slot: _Slot) -> None:
        """A zygote has died: have another one, later each time it dies before it was warm."""
        if self._is_closed or self._slots.get(slot.identity) is not slot:
            return
        if slot.identity is not None or not self._is_kept:
            # Its user may never come again; whoever forks next starts another one.
            logger.warning("The zygote of user %d has ended.", slot.user)
            return
        logger.warning("The zygote of user %d has ended; starting another one.", slot.user)
        slot.pause_s = min(max(slot.pause_s * 2, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        slot.retry = asyncio.get_running_loop().call_later(slot.pause_s, self._retry, slot)

    def _retry(self, slot: _Slot) -> None:
        alive = slot.process is not None and not slot.process.is_gone
        if self._is_closed or alive or slot.starting is not None:
            return
        slot.starting = asyncio.create_task(self._start(slot))
        # Its failure is told to whoever forks next; the death itself leads here again.
        slot.starting.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _log(self, slot: _Slot) -> Path:
        return zygote_log(self._log_folder, self._name, slot.user)

    def _command(self, slot: _Slot) -> ZygoteCommand:
        identity = slot.identity
        isolated = os.geteuid() == 0 and identity is None and self._may_share
        return ZygoteCommand(
            # -I for root: neither the caller's folder nor its variables choose what root loads.
            arguments=(
                str(self._interpreter),
                "-I" if isolated else "-P",
                *program(self._package_folder),
                str(self._spares if identity is None else 0),
            ),
            user=None if identity is None else identity.uid,
            group=None if identity is None else identity.gid,
            groups=() if identity is None else identity.groups,
            environ={
                **environ_for(
                    os.environ,
                    shared=os.geteuid() == 0,
                    is_own=self._package_folder is None,
                ),
                **(NO_HOME if isolated else {}),
                **TUNED,
            },
            log=self._log(slot),
        )


async def _give_up(starting: asyncio.Future[Started]) -> None:
    """End what nobody waits for any more, as soon as there is a process to end."""
    with contextlib.suppress(Unavailable):
        (await starting).give_up()


def _first_untrusted(interpreter: Path) -> Path | None:
    return first_untrusted(look_at(interpreter, os.environ.get(LIBRARIES, "")))


def _request(slot: _Slot, identity: Identity | None) -> Fork:
    """What the zygote is asked for; the zygote process numbers it and names its descriptors."""
    become = None if slot.identity is not None else identity
    if become is None and os.geteuid() == 0 and slot.identity is None:
        # The zygote of many users has no name and no home, not even its own user's.
        become = Identity(0, os.getegid(), tuple(os.getgroups()))
    return Fork(
        ticket=0,
        uid=None if become is None else become.uid,
        gid=None if become is None else become.gid,
        groups=() if become is None else become.groups,
        descriptors=(),
    )
