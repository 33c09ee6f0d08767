"""A claim's scheduler: distributed's own, over the claim's mutual TLS, told about to the agent.

Called by `child` in a process that is the claim's user already.
"""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dask.config

from jupyter_gpupool.protocol.keeping import Keeping
from jupyter_gpupool.protocol.launch import Hello, Launch, Lively, Orders, SchedulerState

from .activity_probe import probe
from .agent_link import AgentLink
from .claim_scheduler import ClaimScheduler
from .credentials import ClaimSecurity
from .dashboard import open_dashboard
from .hibernation import Hibernation
from .life import live_until_ended
from .members import Members
from .problems import CannotStart, ExitCode
from .prompt_tasks import PromptTasks
from .protocols import check_protocol
from .retiring import Membership

_QUIETER = {
    # Measures how late the loop runs; twice a second tells as much as fifty times.
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "1s",
    # A scheduler has no device of its own to watch.
    "distributed.diagnostics.nvml": False,
    # `dashboard` serves them, when they are asked for.
    "distributed.scheduler.http.routes": [],
    # How often an open page is pinged and a closed one's session is looked for.
    "distributed.scheduler.dashboard.bokeh-application.keep_alive_milliseconds": 10_000,
    "distributed.scheduler.dashboard.bokeh-application.check_unused_sessions_milliseconds": 10_000,
}
_UNHURRIED = ("idle-timeout", "no-workers-timeout")
"""Callbacks that look, four times a second, for time-outs of minutes."""
_UNHURRIED_MS = 1000
_CLOSE_WITHIN_S = 2.0


def run(launch: Launch) -> int:
    """Be the claim's scheduler until it is stopped.

    Returns:
        The exit code.
    """
    check_protocol(launch.protocol)
    routes = dask.config.get("distributed.scheduler.http.routes")
    dask.config.set(_QUIETER)
    return live_until_ended(_Process(launch, routes).serve())


class _Process:
    def __init__(self, launch: Launch, routes: Sequence[str]) -> None:
        self._launch = launch
        self._routes = routes
        self._stop = asyncio.Event()
        self._code = ExitCode.GOOD

    async def serve(self) -> int:
        launch = self._launch
        if launch.scheduler is None:
            raise CannotStart("its launch does not say what a scheduler has to know.")
        scheduler = ClaimScheduler(
            host=launch.listen,
            port=0,
            protocol=launch.protocol,
            security=ClaimSecurity(launch.tls),
            dashboard=False,
            local_directory=launch.folder,
        )
        for name in _UNHURRIED:
            scheduler.periodic_callbacks[name].callback_time = _UNHURRIED_MS
        await scheduler
        port = open_dashboard(
            scheduler,
            listen=launch.listen,
            prefix=launch.scheduler.dashboard_prefix,
            tls=launch.tls,
            routes=self._routes,
        )
        await self._keep_agent_told(scheduler, port)
        return self._code

    async def _keep_agent_told(self, scheduler: ClaimScheduler, port: int | None) -> None:
        state = SchedulerState(address=scheduler.address, dashboard_port=port, workers=())

        def tell(**changes: Any) -> None:
            nonlocal state
            state = replace(state, **changes)
            link.tell(state)

        def told(now: Membership) -> None:
            tell(workers=now.workers, retiring=now.retiring, retired=now.retired)

        def kept(now: Keeping) -> None:
            tell(keeping=now)

        def obey(orders: Orders) -> None:
            members.obey(orders)
            hibernation.obey(orders)

        members = Members(scheduler, told)
        hibernation = Hibernation(scheduler, members, kept)
        for plugin in (members, hibernation, PromptTasks()):
            scheduler.add_plugin(plugin)
        link = AgentLink(
            self._launch.agent_socket,
            Hello(role=self._launch.role, claim_id=self._launch.claim_id, lease_id=""),
            obey=obey,
            refused=self._give_up,
        )
        link.tell(state)
        probing = probe(scheduler, lambda seen: link.mention(Lively(activity=seen)))
        works = [asyncio.create_task(work) for work in (link.run(), hibernation.run(), probing)]
        await self._until_stopped(scheduler)
        for work in works:
            work.cancel()

    async def _until_stopped(self, scheduler: Any) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        ends = [
            asyncio.create_task(self._stop.wait()),
            asyncio.create_task(scheduler.finished()),
        ]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(
            [asyncio.create_task(scheduler.close(reason="stopped by its agent"))],
            timeout=_CLOSE_WITHIN_S,
        )

    def _give_up(self) -> None:
        self._code = ExitCode.UNKNOWN_TO_AGENT
        self._stop.set()
