"""The host as its agent holds it: everything that happens comes here, and leads to one turn.

Made by `app`, driven by `link`. A turn compares what is wanted with what is and has the difference
carried out; it is due after each change, however many there were.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample
from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.protocol.link import Desired, HostReport

from . import procfs
from .adoption import adopt
from .carry_out import CarryOut
from .children import Children
from .claim_folders import remove_working_folders, tidy_logs
from .control_groups import ControlGroups
from .device_watch import DeviceWatch, Pace
from .devices.base import Devices
from .devices.lock import DeviceLocks
from .footprint import HOST_MARK
from .foreign import foreign_on
from .host_facts import HostFacts
from .launching import HostTerms
from .memory import kill, outgrown
from .parts import Parts, footprint_of
from .process_watch import Ended, ProcessWatch
from .reconcile import difference
from .records import Records
from .reports import Moment, host_report
from .seen import Seen, Stage
from .state_folder import StateFolder
from .stopping import LOOK, send, wait_for_end
from .table import Table
from .users import UserRules, Users
from .wanted import NOTHING, Wanted, is_news, wanted_of
from .zygotes import Zygotes

logger = logging.getLogger(__name__)

_CHILDREN_RETURN_WITHIN_S = 2.0
_STRAYS_END_WITHIN_S = 2.0
_TIDY_EVERY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """How this host is to be kept.

    Attributes:
        memory_share_bytes: Host memory a worker when its claim names none.
    """

    facts: HostFacts
    pace: Pace
    memory_share_bytes: int
    users: UserRules
    interpreter: Path = Path(sys.executable)


class HostAgent:
    """Keeps one host as it is wanted.

    Attributes:
        news: Set whenever a report would say something new.
        emptied: Set while nothing of any claim is left here.
        clock_problem: Set by the link when this host's clock is off.
    """

    def __init__(
        self, host_id: HostId, folder: StateFolder, devices: Devices, settings: HostSettings
    ) -> None:
        self.news = asyncio.Event()
        self.emptied = asyncio.Event()
        self.clock_problem = ""
        self._settings = settings
        self._devices = devices
        self._wanted: Wanted | None = None
        self._generation = 0
        self._turn_is_due = False
        self._is_ending = False
        self._record_problem = ""
        self._zygote_problem = ""
        self._tidied_at_s = time.monotonic()
        self._tasks: list[asyncio.Task[None]] = []
        self._parts = self._make_parts(host_id, folder, devices)
        self._hands = CarryOut(self._parts, lambda: self._wanted)

    def _make_parts(self, host_id: HostId, folder: StateFolder, devices: Devices) -> Parts:
        table, locks = Table(self._changed), DeviceLocks()
        processes = ProcessWatch(self._take_end)
        self._children = Children(host_id, table, locks, self._keep_record)
        return Parts(
            host_id=host_id,
            folder=folder,
            terms=HostTerms(
                folder=folder,
                listen=self._settings.facts.address,
                memory_share_bytes=self._settings.memory_share_bytes,
            ),
            table=table,
            records=Records(folder.running, boot=procfs.boot_id()),
            groups=ControlGroups(host_id),
            locks=locks,
            devices=DeviceWatch(devices, locks, table, self._settings.pace),
            users=Users(self._settings.users),
            zygotes=Zygotes(
                interpreter=self._settings.interpreter,
                log_folder=folder.logs,
                exited=processes.ended_with,
            ),
            processes=processes,
            socket=self._children.open_socket(folder.socket),
        )

    @property
    def host_id(self) -> HostId:
        """The host's name for all time."""
        return self._parts.host_id

    # --- life

    async def start(self) -> None:
        """Adopt what runs, and be ready for the manager.

        Raises:
            Unavailable: If children could not reach the agent.
        """
        # The zygotes inherit it, and so does all that they fork: how strays are found.
        os.environ[HOST_MARK] = self._parts.host_id
        await self._adopt()
        await self._parts.socket.start()
        await self._parts.devices.look(self._foreign_on)
        self._tasks = [asyncio.create_task(self._warm_up())]
        await self._children.wait_for_all(_CHILDREN_RETURN_WITHIN_S)

    async def run(self) -> None:
        """Watch for ever. Whatever this raises is a fault of ours: let the next agent adopt."""
        watching = self._parts.devices.run(self._foreign_on, self._hands.forget, self.news.set)
        await asyncio.gather(watching, self._tick_for_ever())

    async def close(self) -> None:
        """Let go of everything; what runs lives on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._hands.close()
        await self._parts.socket.close()
        await self._parts.zygotes.close()
        self._parts.processes.close()
        self._parts.users.close()
        self._parts.groups.tidy()
        self._devices.close()

    def end_all(self) -> None:
        """End every claim here, and take no more."""
        self._wanted, self._is_ending = NOTHING, True
        self._changed()

    # --- the link

    def begin_connection(self) -> None:
        """A new connection counts its generations anew."""
        self._generation = 0

    def desire(self, desired: Desired) -> None:
        """The manager's word on what should run here."""
        if self._is_ending or not is_news(desired, self._generation):
            return
        self._wanted, self._generation = wanted_of(desired), desired.generation
        self._turn()

    def report(self) -> HostReport:
        """Everything that is, right now."""
        moment = Moment(
            generation=self._generation,
            at=datetime.now(UTC),
            agent_pid=os.getpid(),
            problem=self._problem(),
        )
        parts = self._parts
        return host_report(parts.host_id, self._settings.facts, parts.table, parts.devices, moment)

    def _problem(self) -> str:
        said = (
            self._hands.problem,
            self._zygote_problem,
            self._parts.devices.problem,
            self.clock_problem,
            self._record_problem,
        )
        return " ".join(sentence for sentence in said if sentence)

    # --- turns

    def _changed(self) -> None:
        self.news.set()
        if not self._turn_is_due:
            self._turn_is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        if self._parts.table:
            self.emptied.clear()
        else:
            self.emptied.set()
        if self._wanted is not None:
            self._hands.carry_out(difference(self._wanted, self._parts.table, time.monotonic()))
        self.news.set()

    async def _tick_for_ever(self) -> None:
        pace = self._settings.pace
        while True:
            await asyncio.sleep(pace.busy_s if self._parts.table else pace.idle_s)
            self._watch_memory()
            self._parts.devices.judge(self._hands.forget)
            self._hands.retry_records()
            self._turn_if_orphaned()
            await self._tidy()

    def _turn_if_orphaned(self) -> None:
        if any(seen.stage is Stage.FAILED for seen in self._parts.table.values()):
            self._turn()

    def _watch_memory(self) -> None:
        for found in outgrown(self._parts.table.values()):
            logger.warning("%s is killed: %s", found.key, found.reason)
            self._parts.table.put(replace(self._parts.table[found.key], killed_for=found.reason))
            kill(found)

    async def _tidy(self) -> None:
        now_s = time.monotonic()
        if now_s - self._tidied_at_s < _TIDY_EVERY_S:
            return
        self._tidied_at_s = now_s
        keep = self._parts.table.claims() | (self._wanted or NOTHING).claims
        await asyncio.to_thread(_tidy_folders, self._parts.folder, keep)

    def _take_end(self, ended: Ended) -> None:
        self._hands.ended(ended)

    def _keep_record(self, seen: Seen) -> None:
        self._hands.keep_record(seen)

    def _foreign_on(self, sample: DeviceSample) -> tuple[DeviceProcess, ...]:
        rows = self._parts.table.values()
        leases = (self._parts.footprint(row) for row in rows if row.device == sample.uuid)
        return foreign_on(sample, leases)

    # --- the start

    async def _adopt(self) -> None:
        parts = self._parts
        loaded = parts.records.load()
        self._record_problem = loaded.problem
        found = adopt(
            loaded.seen,
            procfs.read_rows(),
            LOOK,
            footprint_of=lambda seen: footprint_of(seen, parts.host_id, parts.folder, parts.groups),
            host_id=parts.host_id,
            now_s=time.monotonic(),
        )
        for stray in found.strays:
            logger.warning("Process %d belongs to no claim any more; it is ended.", stray.id.pid)
            send(stray.id, signal.SIGKILL)
            await wait_for_end(stray.id, _STRAYS_END_WITHIN_S)
        parts.groups.tidy()
        for seen in found.seen:
            parts.table.put(seen)
            self._hands.resume(seen)

    async def _warm_up(self) -> None:
        try:
            warm = await self._parts.zygotes.warm(None)
            self._zygote_problem = warm.problem
        except PoolError as error:
            self._zygote_problem = str(error)
        if self._zygote_problem:
            logger.error("This host cannot start processes yet: %s", self._zygote_problem)
        self.news.set()


def _tidy_folders(folder: StateFolder, keep: frozenset[ClaimId]) -> None:
    try:
        remove_working_folders(folder, keep=keep)
        tidy_logs(folder, keep=keep)
    except OSError as error:
        logger.warning("Old folders could not be tidied: %s", error)
