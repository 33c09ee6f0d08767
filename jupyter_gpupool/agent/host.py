"""The host as its agent holds it: everything that happens comes here, and leads to one turn.

Made by `app`, driven by `link`. A turn compares what is wanted with what is and has the difference
carried out; it is due after each change, however many there were.
"""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.link import Desired, GoneKernel, HostReport, LogAnswer, LogQuery
from jupyter_gpupool.protocol.runtime_file import host_mark

from . import procfs
from .adoption import adopt
from .carry_out import CarryOut
from .children import Children
from .control_groups import ControlGroups
from .device_watch import DeviceWatch, Pace
from .devices.base import Devices
from .devices.lock import DeviceLocks
from .dropping import Dropping
from .environments import EnvironmentRules, Environments
from .footprint import HOST_MARK
from .foreign import foreign_on, owners_on
from .host_facts import HostFacts
from .housekeeping import Housekeeping
from .kernel_watch import Here, gone_kernels
from .keys import ProcessKey
from .launching import HostTerms
from .leftovers import Leftovers
from .log_answers import answer_logs
from .open_files import OpenFiles
from .parts import Parts, footprint_of
from .process_watch import Ended, ProcessWatch
from .reconcile import difference
from .record_keeping import RecordKeeper
from .records import Records
from .reports import Moment, host_report
from .resting import rest_after
from .seen import Stage
from .state_folder import StateFolder
from .stopping import LOOK, send, wait_for_end
from .supervision import supervised
from .sweeping import Sweeper
from .table import Table
from .use_watch import Sampled, UseWatch
from .users import UserRules, Users
from .wanted import NOTHING, Wanted, is_news, wanted_of

logger = logging.getLogger(__name__)

_CHILDREN_RETURN_WITHIN_S = 2.0
_STRAYS_END_WITHIN_S = 2.0
_DAMAGE_SAID_FOR_S = 600.0
_WARM_EVERY_S = 30.0
_WARM_AGAIN_S = 5.0
_LOOK_INTO_EVERY_S = 30.0
_KERNELS_EVERY_S = 2.0


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
    environments: EnvironmentRules


class HostAgent:
    """Keeps one host as it is wanted.

    Attributes:
        news: Set whenever a report would say something new.
        emptied: Set while nothing of any claim is left here.
        clock_problem: Set by the link when this host's clock is off.
    """

    def __init__(
        self,
        host_id: HostId,
        folder: StateFolder,
        devices: Devices,
        settings: HostSettings,
        files: OpenFiles,
    ) -> None:
        self.news = asyncio.Event()
        self.emptied = asyncio.Event()
        self.clock_problem = ""
        self._settings = settings
        self._devices = devices
        self._wanted: Wanted | None = None
        self._generation = 0
        self._turn_is_due = False
        self._rest_until_s = 0.0
        self._is_ending = False
        self._record_problem = ""
        self._record_problem_until_s = 0.0
        self._zygote_problem = ""
        self._uses = UseWatch(self.news.set)
        self._life = procfs.boot_id()
        mark = host_mark(procfs.machine_id(), socket.gethostname())
        self._here = Here(mark=mark, boot_id=self._life, started_at=procfs.started_at)
        self._gone_kernels: tuple[GoneKernel, ...] = ()
        self._parts = self._make_parts(host_id, folder, devices, files)
        self._hands = CarryOut(self._parts, lambda: self._wanted)
        self._housekeeping = Housekeeping(
            self._parts, self._hands, settings.pace, keep=self._claims, turn=self._turn
        )

    def _make_parts(
        self, host_id: HostId, folder: StateFolder, devices: Devices, files: OpenFiles
    ) -> Parts:
        table, locks = Table(self._changed), DeviceLocks()
        leftovers = Leftovers(kept=folder.leftovers)
        processes = ProcessWatch(self._take_end)
        records = Records(folder.running, boot=procfs.boot_id())
        keeper = RecordKeeper(records, table)
        self._children = Children(host_id, table, locks, keeper.keep, self._take_lively)
        return Parts(
            host_id=host_id,
            folder=folder,
            terms=HostTerms(
                folder=folder,
                listen=self._settings.facts.address,
                memory_share_bytes=self._settings.memory_share_bytes,
            ),
            table=table,
            records=records,
            keeper=keeper,
            groups=ControlGroups(host_id),
            files=files,
            locks=locks,
            devices=DeviceWatch(
                devices,
                locks,
                table,
                self._settings.pace,
                self._owners_on,
                dirty=lambda: leftovers.dirty,
            ),
            users=Users(self._settings.users),
            environments=Environments(
                self._settings.environments,
                log_folder=folder.logs,
                package_folder=folder.package,
                exited=processes.ended_with,
                news=self.news.set,
            ),
            processes=processes,
            sweeper=Sweeper(leftovers),
            dropping=Dropping(table, folder, leftovers, self._changed),
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
            BadRequest: If an environment it should offer is no Python, and nothing runs here.
            Unavailable: If children could not reach the agent.
        """
        # Interpreters and zygotes inherit it, and so does all they fork: how strays are found.
        os.environ[HOST_MARK] = self._parts.host_id
        await self._parts.environments.look()
        # An environment that went while claims run is told as a problem: they need their agent.
        if not self._parts.folder.has_records:
            self._parts.environments.refuse_no_python()
        await self._adopt()
        await self._parts.socket.start()
        await self._parts.devices.look(self._foreign_on)
        await self._children.wait_for_all(_CHILDREN_RETURN_WITHIN_S)

    async def run(self) -> None:
        """Watch for ever. What this raises is a fault of ours: let the next agent adopt."""
        async with asyncio.TaskGroup() as group:
            for name, work in (
                ("the watch of devices", self._watch_devices),
                ("the regular look", self._housekeeping.tick_for_ever),
                ("tidying up", self._housekeeping.tidy_for_ever),
                ("the watch of what claims do", self._watch_use),
                ("the look after kernels", self._look_after_kernels),
                ("keeping a zygote warm", self._keep_warm),
                ("the look into environments", self._look_into_environments),
            ):
                group.create_task(supervised(name, work))

    async def _watch_devices(self) -> None:
        await self._parts.devices.run(self._foreign_on, self._hands.forget, self.news.set)

    async def _watch_use(self) -> None:
        """Look at each new sample of the devices."""
        parts = self._parts
        while True:
            await asyncio.sleep(self._settings.pace.busy_s)
            devices = parts.devices
            sampled = Sampled(known=devices.known, samples=devices.samples, owners=devices.owners)
            self._uses.sampled(parts.table.values(), sampled, time.monotonic())
            self._uses.keep_short(time.monotonic())

    async def _look_after_kernels(self) -> None:
        while True:
            await asyncio.sleep(_KERNELS_EVERY_S)
            gone = gone_kernels((self._wanted or NOTHING).by_claim, self._here)
            if gone != self._gone_kernels:
                self._gone_kernels = gone
                self.news.set()

    async def close(self) -> None:
        """Let go of everything; what runs lives on."""
        await self._hands.close()
        self._parts.sweeper.close()
        await self._parts.socket.close()
        await self._parts.environments.close()
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
        self._uses.joins()

    def desire(self, desired: Desired) -> None:
        """The manager's word on what should run here."""
        if self._is_ending or not is_news(desired, self._generation):
            return
        self._wanted, self._generation = wanted_of(desired), desired.generation
        if time.monotonic() >= self._rest_until_s:
            self._turn()
        else:
            self._changed()

    def look_now(self) -> None:
        """The manager wants to know how things are."""
        self._uses.asked()
        self._parts.devices.look_soon()
        self.news.set()

    def report(self) -> HostReport:
        """Everything that is, right now."""
        moment = Moment(
            generation=self._generation,
            life=self._life,
            gone_kernels=self._gone_kernels,
            uses=self._uses.cut(self._parts.table.claims(), time.monotonic()),
            at=datetime.now(UTC),
            agent_pid=os.getpid(),
            problem=self._problem(),
            can_start=self._can_start(),
            environments=self._parts.environments.reports(),
            kernel_environments=self._settings.environments.kernels_own,
        )
        parts = self._parts
        return host_report(parts.host_id, self._settings.facts, parts.table, parts.devices, moment)

    async def logs(self, query: LogQuery) -> LogAnswer:
        """The last lines of what the manager asks for, as far as they are kept."""
        folder, name = self._parts.folder, self._settings.facts.name
        return await asyncio.to_thread(answer_logs, query, folder, name)

    def _can_start(self) -> bool:
        has_zygote = not self._zygote_problem or self._parts.environments.others_do
        return has_zygote and not self._parts.keeper.problem

    def _problem(self) -> str:
        damaged = time.monotonic() < self._record_problem_until_s
        said = (
            self._parts.keeper.problem,
            self._zygote_problem,
            self._parts.devices.problem,
            self._housekeeping.problem,
            self.clock_problem,
            self._record_problem if damaged else "",
        )
        return " ".join(sentence for sentence in said if sentence)

    # --- turns

    def _changed(self) -> None:
        self.news.set()
        if not self._turn_is_due:
            self._turn_is_due = True
            rest_s = self._rest_until_s - time.monotonic()
            asyncio.get_running_loop().call_later(max(0.0, rest_s), self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        began_s = time.monotonic()
        self._make_it_so()
        ended_s = time.monotonic()
        self._rest_until_s = ended_s + rest_after(ended_s - began_s)

    def _make_it_so(self) -> None:
        if self._parts.table:
            self.emptied.clear()
        else:
            self.emptied.set()
        if self._wanted is not None:
            self._hands.carry_out(difference(self._wanted, self._parts.table, time.monotonic()))
        self.news.set()

    def _claims(self) -> frozenset[ClaimId]:
        return self._parts.table.claims() | (self._wanted or NOTHING).claims

    def _take_lively(self, claim_id: ClaimId, activity: Activity) -> None:
        self._uses.heard(claim_id, activity, time.monotonic())

    def _take_end(self, ended: Ended) -> None:
        self._hands.ended(ended)

    def _foreign_on(self, sample: DeviceSample) -> tuple[DeviceProcess, ...]:
        rows = self._parts.table.on_device(sample.uuid)
        return foreign_on(sample, (self._parts.footprint(row) for row in rows))

    def _owners_on(self, sample: DeviceSample) -> Mapping[int, ProcessKey]:
        rows = self._parts.table.on_device(sample.uuid)
        used = (row for row in rows if row.stage is not Stage.FREEING)
        return owners_on(sample, (self._parts.footprint(row) for row in used))

    # --- the start

    async def _adopt(self) -> None:
        parts = self._parts
        loaded = parts.records.load()
        self._record_problem = loaded.problem
        self._record_problem_until_s = time.monotonic() + _DAMAGE_SAID_FOR_S
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

    async def _keep_warm(self) -> None:
        """Have a zygote ready before anyone needs it, and say so while there can be none."""
        while True:
            problem = await self._parts.environments.warm_default()
            if problem != self._zygote_problem:
                self._zygote_problem = problem
                self.news.set()
                if problem:
                    logger.error("This host cannot start processes: %s", problem)
            await asyncio.sleep(_WARM_AGAIN_S if problem else _WARM_EVERY_S)

    async def _look_into_environments(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_INTO_EVERY_S)
            await self._parts.environments.drop_unused()
            await self._parts.environments.look()
