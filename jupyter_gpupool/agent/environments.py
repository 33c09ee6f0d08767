"""The Python environments of a host: which there are, what is in them, and their zygotes.

Held by `host`, asked by `starting`. The default's zygote is warm from the start; another one's is
warmed by the first claim that names it, and goes when nobody has used it for long. A kernel's own
environment comes and goes in the same way, without having been written down by anybody.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from jupyter_gpupool.pool.errors import NotAllowed, NotFound, PoolError, Unavailable
from jupyter_gpupool.protocol.launch import Launch
from jupyter_gpupool.protocol.link import EnvironmentReport
from jupyter_gpupool.protocol.using import OWN_ENVIRONMENT
from jupyter_gpupool.protocol.versions import read_versions

from .kernel_environment import check_kernels_own
from .offered import Offered, Stamp, not_python
from .own_package import expose_package
from .own_thread import in_own_thread
from .probing import CannotRun, Probed, probe
from .zygotes import Identity, Zygotes

logger = logging.getLogger(__name__)

_MOST_KEPT_UNUSED = 2
_LOOKED_AT_WITHIN_S = 10.0
_NO_DISK = Probed(problem="its disk does not answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRules:
    """Which environments there are, and how they are kept.

    Attributes:
        offered: The default first.
        kernels_own: Whether claims may run in the environment of the kernel that asks.
        kept_s: How long one that nobody uses stays warm; the default stays.
        spares: Processes kept forked ahead in the default.
        looks_as: Who looks into an environment before anybody has claimed it; None is the agent's
            own user.
    """

    offered: tuple[Offered, ...]
    kernels_own: bool
    kept_s: float
    spares: int = 0
    looks_as: Identity | None = None


@dataclass(slots=True)
class _Kept:
    """An environment's zygotes, and when they were used last."""

    zygotes: Zygotes
    used_at_s: float


@dataclass(slots=True)
class _Known:
    """What is known of an environment, and of which state of its files."""

    probed: Probed = field(default_factory=Probed)
    stamp: Stamp | None = None
    stamping: asyncio.Future[Stamp] | None = None

    async def stamp_of(self, offered: Offered) -> Stamp:
        """The state of its files now; empty while their disk does not answer."""
        if self.stamping is None or self.stamping.done():
            self.stamping = in_own_thread(offered.stamp)
        try:
            async with asyncio.timeout(_LOOKED_AT_WITHIN_S):
                return await asyncio.shield(self.stamping)
        except TimeoutError:
            return ()


class Environments:
    """Forks children in the environment they are wanted in.

    Args:
        log_folder: Where zygotes' own output goes; exists.
        package_folder: Made to hold our package, for environments without it.
        exited: As `Zygotes` has it.
        news: Called when something else is known of an environment.
    """

    def __init__(
        self,
        rules: EnvironmentRules,
        *,
        log_folder: Path,
        package_folder: Path,
        exited: Callable[[int, int], None],
        news: Callable[[], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._log_folder = log_folder
        self._package_folder = package_folder
        self._exited = exited
        self._news = news
        self._now_s = now_s
        self._kept: dict[Offered, _Kept] = {}
        self._checking: dict[Offered, asyncio.Task[None]] = {}
        self._known: dict[Offered, _Known] = {each: _Known() for each in rules.offered}
        self._known[self._default].probed = Probed(versions=read_versions())

    @property
    def names(self) -> tuple[str, ...]:
        """What it offers, the default first."""
        return tuple(offered.name for offered in self._rules.offered)

    @property
    def pids(self) -> tuple[int, ...]:
        """The zygotes that run."""
        return tuple(pid for kept in self._kept.values() for pid in kept.zygotes.pids)

    @property
    def logs(self) -> frozenset[Path]:
        """Where the zygotes that run write to."""
        return frozenset(log for kept in self._kept.values() for log in kept.zygotes.logs)

    @property
    def others_do(self) -> bool:
        """Whether the default lacks something, and claims may run in another one."""
        return self._lacks(self._default) and len(self._rules.offered) > 1

    def reports(self) -> tuple[EnvironmentReport, ...]:
        """What the manager is told of each that is offered."""
        return tuple(self._report(offered) for offered in self._rules.offered)

    def find(self, name: str, interpreter: str = "") -> Offered:
        """The environment that is wanted; `interpreter` counts for the kernel's own alone.

        Raises:
            NotFound: If there is none of that name.
            NotAllowed: If claims may not choose an interpreter here.
        """
        if name == OWN_ENVIRONMENT:
            return self._kernels_own(interpreter)
        named = (each for each in self._rules.offered if each.name == name)
        found = next(named, None) if name else self._default
        if found is None:
            names = ", ".join(f'"{each}"' for each in self.names)
            raise NotFound(
                f"This host has no Python environment named {name!r}.", hint=f"It offers {names}."
            )
        return found

    async def warm_default(self) -> str:
        """Have the default's zygote ready; why there is none, else ""."""
        try:
            return await self._warm(self._default, None)
        except PoolError as error:
            # Of its zygote, which may come up the next time, and not of what is in it.
            return str(error)

    async def fork(
        self,
        launch: Launch,
        *,
        environment: Offered,
        identity: Identity | None,
        log_fd: int,
        lock_fds: tuple[int, ...],
    ) -> int:
        """Start a scheduler or worker there as that user; its pid.

        Raises:
            Unavailable: If there is no such process; the message holds why.
            NotAllowed: If that user cannot run the kernel's interpreter.
        """
        if environment.is_kernels:
            environment = environment.of(os.geteuid() if identity is None else identity.uid)
            await self._check(environment, identity)
        problem = await self._warm(environment, identity)
        if problem:
            raise Unavailable(
                f'The environment "{environment.name}" of this host cannot be used.',
                hint=f"Its Python says: {problem}",
            )
        zygotes = self._zygotes(environment)
        return await zygotes.fork(launch, identity=identity, log_fd=log_fd, lock_fds=lock_fds)

    async def look(self) -> None:
        """Find out what is in those environments whose files are new or have changed.

        One that is used is what it was when it was warmed, and looked at once it is not; so is
        the default as long as it lacks nothing.
        """
        odd = [each for each in self._rules.offered if each != self._default or self._lacks(each)]
        await asyncio.gather(*(self._look_at(each) for each in odd if not self._is_used(each)))

    def refuse_no_python(self) -> None:
        """See that all that was looked at is a Python, for whoever wrote it down to mend.

        Raises:
            BadRequest: If one is not.
        """
        for offered, known in self._known.items():
            if not known.probed.is_python:
                raise not_python(offered.name, offered.interpreter, known.probed.problem)

    async def drop_unused(self) -> None:
        """Let those go cold that nobody has used for long."""
        for offered, kept in list(self._kept.items()):
            unused_s = self._now_s() - kept.used_at_s
            is_old = offered != self._default and unused_s >= self._rules.kept_s
            if is_old and not self._is_used(offered):
                logger.info('Nobody has used the environment "%s" for long.', offered.name)
                await self._drop(offered)

    async def close(self) -> None:
        """End the zygotes; their children live on."""
        for checking in self._checking.values():
            checking.cancel()
        for offered in list(self._kept):
            await self._drop(offered)

    @property
    def _default(self) -> Offered:
        return self._rules.offered[0]

    def _kernels_own(self, interpreter: str) -> Offered:
        if not self._rules.kernels_own:
            raise NotAllowed(
                "This host runs no claim in its kernel's own environment.",
                hint="Name one it offers, or have its admin set AgentApp.kernel_environments.",
            )
        path = Path(interpreter)
        if not path.is_absolute():
            raise NotFound(f"The kernel's interpreter {interpreter!r} is no path of this host.")
        # One that is offered anyway is warm sooner, and may be warm already.
        same = (each for each in self._rules.offered if each.is_started_by(path))
        return next(same, Offered(OWN_ENVIRONMENT, path, is_kernels=True))

    async def _check(self, environment: Offered, identity: Identity | None) -> None:
        """Ask it once for all that come together, and for none while it is kept."""
        if environment in self._kept:
            return
        checking = self._checking.get(environment)
        if checking is None:
            check = check_kernels_own(environment.interpreter, identity)
            checking = self._checking[environment] = asyncio.create_task(check)
            checking.add_done_callback(lambda _: self._checking.pop(environment))
        await asyncio.shield(checking)
        await self._make_room(environment)

    async def _make_room(self, environment: Offered) -> None:
        """Let a user keep few kernels' environments warm: there is no end of paths to name."""
        others = [
            offered
            for offered, kept in sorted(self._kept.items(), key=lambda item: item[1].used_at_s)
            if offered.user == environment.user and offered.is_kernels
        ]
        for offered in others[: max(0, len(others) - _MOST_KEPT_UNUSED)]:
            if not self._is_used(offered):
                await self._drop(offered)

    async def _warm(self, environment: Offered, identity: Identity | None) -> str:
        zygotes = self._zygotes(environment)
        warm = await zygotes.warm(identity)
        # What one user has installed for himself says nothing of what others find.
        if environment in self._known and await zygotes.speaks_for_all(identity):
            self._learn(environment, Probed(versions=warm.versions, problem=warm.problem))
        return warm.problem

    def _learn(self, environment: Offered, probed: Probed) -> None:
        known = self._known[environment]
        if known.probed != probed:
            known.probed = probed
            self._news()

    async def _look_at(self, offered: Offered) -> None:
        known = self._known[offered]
        stamp = await known.stamp_of(offered)
        if stamp == known.stamp or self._is_used(offered):
            return
        # What is warm now would mix what it has loaded with what is there.
        await self._drop(offered)
        self._learn(offered, await self._looked_into(offered) if stamp else _NO_DISK)
        known.stamp = stamp

    async def _looked_into(self, offered: Offered) -> Probed:
        try:
            return await probe(offered.interpreter, self._rules.looks_as)
        except CannotRun:
            # Whoever claims it may be let in all the same.
            return Probed()

    def _lacks(self, offered: Offered) -> bool:
        return bool(self._known[offered].probed.problem)

    def _is_used(self, offered: Offered) -> bool:
        kept = self._kept.get(offered)
        return kept is not None and kept.zygotes.is_used

    async def _drop(self, offered: Offered) -> None:
        kept = self._kept.pop(offered, None)
        if kept is not None:
            await kept.zygotes.close()
            self._news()

    def _zygotes(self, environment: Offered) -> Zygotes:
        """Its zygotes, which count as used now."""
        kept = self._kept.get(environment)
        if kept is None:
            made = self._make_zygotes(environment)
            kept = self._kept[environment] = _Kept(made, self._now_s())
        kept.used_at_s = self._now_s()
        return kept.zygotes

    def _make_zygotes(self, environment: Offered) -> Zygotes:
        is_default = environment == self._default
        return Zygotes(
            interpreter=environment.interpreter,
            log_folder=self._log_folder,
            exited=partial(self._note_exit, environment),
            spares=self._rules.spares if is_default else 0,
            name=environment.log_name,
            package_folder=None if is_default else expose_package(self._package_folder),
            may_share=not environment.is_kernels,
            is_kept=is_default,
        )

    def _note_exit(self, environment: Offered, pid: int, status: int) -> None:
        if environment in self._kept:
            self._kept[environment].used_at_s = self._now_s()
        self._exited(pid, status)

    def _report(self, offered: Offered) -> EnvironmentReport:
        probed = self._known[offered].probed
        kept = self._kept.get(offered)
        return EnvironmentReport(
            name=offered.name,
            versions=dict(probed.versions),
            problem=probed.problem,
            is_warm=kept is not None and bool(kept.zygotes.pids),
        )
