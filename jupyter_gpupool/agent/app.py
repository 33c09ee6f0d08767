"""The agent as a program: its options, its start, its end.

`python -m jupyter_gpupool.agent`, or `jupyter gpupool agent`. Options come from the command line or
from `jupyter_gpupool_config.py` in Jupyter's configuration folders.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine
from pathlib import Path

from jupyter_core.application import JupyterApp
from traitlets import Bool, Dict, Float, Int, List, Unicode

from jupyter_gpupool import __version__
from jupyter_gpupool.pool.errors import BadRequest, PoolError
from jupyter_gpupool.protocol.private_file import read_token

from .device_watch import Pace
from .devices.opening import open_devices
from .environments import EnvironmentRules
from .freeing import TOLERATED_BYTES
from .host import HostAgent, HostSettings
from .host_facts import HostFacts, address_towards, usable_cpus, usable_memory_bytes
from .journal import open_journal
from .link import Link, LinkTarget, check_url
from .offered import DEFAULT_ENVIRONMENT, Offered, read_offers
from .open_files import OpenFiles
from .shares import GRACE_S
from .state_folder import StateFolder, open_state_folder, read_host_id, take_lock
from .users import UserRules, read_uid_min
from .zygotes import NOBODY

logger = logging.getLogger(__name__)

_TOKEN = "GPUPOOL_TOKEN"  # noqa: S105 - the name of the variable
_END_ALL_WITHIN_S = 15.0


class AgentApp(JupyterApp):
    """Joins this host to a pool and keeps it as the manager wants it."""

    name = "jupyter-gpupool-agent"
    version = __version__
    description = "Joins this host's GPUs to a pool: starts and watches what its manager wants."
    config_file_name = Unicode("jupyter_gpupool_config")

    join_url = Unicode(
        help="Address of the pool's manager, such as https://pool.example.org:8780. Required."
    ).tag(config=True)
    state_folder = Unicode(
        help="Folder for what has to outlive the agent: which processes run, logs, working folders."
        " On a local disk, for a network disk that hangs would hang the agent. Default:"
        " /var/lib/gpupool/agent for root, else $XDG_STATE_HOME/gpupool/agent."
    ).tag(config=True)
    host_name = Unicode(
        help="What people call this host. Names should differ within a pool, but need not."
        " Default: the machine's host name."
    ).tag(config=True)
    labels = List(
        Unicode(),
        help="Words about this host for placement: a rack, a data set, `durable` for a host that"
        " may hold schedulers. Default: none.",
    ).tag(config=True)
    simulated = Int(
        None,
        allow_none=True,
        help="Devices to simulate on a machine without a GPU. 0 never simulates, which is right for"
        " production: a host with a broken driver should not offer devices. Default: four.",
    ).tag(config=True)
    simulated_host = Unicode(
        help="Name of the machine whose devices are simulated. Pools that simulate the same one"
        " share its devices as they would share real ones: one leases, the other waits. Give tests"
        " that run together different names. Default: this machine."
    ).tag(config=True)
    address = Unicode(
        help="IP address that this host's schedulers and workers listen on; other hosts of the pool"
        " and its users must reach it. Default: loopback if the manager is there, else the address"
        " on the way to the manager."
    ).tag(config=True)
    token_file = Unicode(
        help=f"File with the agent's token. Only the agent's user should be able to read it."
        f" Default: the environment variable {_TOKEN}, which children do not inherit."
    ).tag(config=True)
    ca_file = Unicode(
        help="PEM file of the authority that signed the manager's certificate. Default: the"
        " system's authorities."
    ).tag(config=True)
    allow_plain_http = Bool(
        False,
        help="Join a manager on another machine over http. On, whoever can listen on the network"
        " between them reads the agent's token and every claim's keys. Default: off.",
    ).tag(config=True)
    host_memory_share = Float(
        0.9,
        min=0.05,
        max=1.0,
        help="Share (0.05 to 1) of the host's memory that workers get together, divided by its"
        " devices, when a claim names no limit. More leaves less for all else. Default: 0.9.",
    ).tag(config=True)
    spares = Int(
        2,
        min=0,
        max=64,
        help="Processes kept forked and half started ahead of any claim: a claim's scheduler and as"
        " many workers as remain start about 30 ms sooner. Each takes 25 MB of memory and no CPU."
        " Default: 2.",
    ).tag(config=True)
    verify_within_s = Float(
        10.0,
        min=0.0,
        help="Seconds a device has after its last process ended until it counts as stuck and is"
        " quarantined. Longer is more patient with slow drivers, and tells later of a sick one."
        " Default: 10.",
    ).tag(config=True)
    tolerated_bytes = Int(
        TOLERATED_BYTES,
        min=0,
        help="Bytes of device memory that may be in use on a free device: what the driver itself"
        " keeps. More risks leasing a device that is not empty. Default: 512 MiB.",
    ).tag(config=True)
    share_grace_s = Float(
        GRACE_S,
        min=0.0,
        help="Seconds from the warning until a worker that takes more of a shared device's memory"
        " than its part is ended. Longer lets programs free what they only cache, and others on the"
        " device run out of memory meanwhile. Default: 10.",
    ).tag(config=True)
    environments = Dict(
        value_trait=Unicode(),
        key_trait=Unicode(),
        help="Further Python environments that claims may run in: name to path of an interpreter or"
        " of an environment's folder. Each has to bring dask-cuda. Its first claim waits seconds"
        ' until it is warm. Default: none; "default" is always there, and is the agent\'s own.',
    ).tag(config=True)
    environment_kept_s = Float(
        3600.0,
        min=60.0,
        help="Seconds that an environment other than the default stays warm after its last process"
        " has ended. Longer starts the next claim in it sooner, and keeps 150 MB of memory a user"
        " who used it. Default: an hour.",
    ).tag(config=True)
    kernel_environments = Bool(
        None,
        allow_none=True,
        help="Let claims run in the environment of the kernel that asks, if its interpreter is"
        " there on this host for the claim's user. It runs as that user alone, as all that user's"
        " code does; a root agent then starts interpreters that its admin has not chosen. Default:"
        " off for a root agent that runs claims as their users, else on.",
    ).tag(config=True)
    sample_interval_s = Float(
        1.0,
        min=0.1,
        help="Seconds between two looks at devices and memory while anything is leased. Shorter"
        " catches a worker that outgrows its memory earlier, and costs more. Default: 1.",
    ).tag(config=True)
    idle_sample_interval_s = Float(
        5.0,
        min=0.1,
        help="Seconds between two looks while nothing is leased. Shorter shows others' processes"
        " earlier, and costs more. Default: 5.",
    ).tag(config=True)
    orphan_after_s = Float(
        None,
        allow_none=True,
        min=1.0,
        help="Seconds without the manager after which the agent ends all claims here and itself."
        " Longer survives longer outages; shorter frees the GPUs of a pool that is gone for good."
        " Default: what the manager says, and an hour until it has said it.",
    ).tag(config=True)
    run_claims_as_agent = Bool(
        False,
        help="Run claims for which the manager names no user as the agent's own user, even as root."
        " On, whoever may claim is root on this host; an embedded pool turns it on, for its"
        " only user is the one who started it. Default: off.",
    ).tag(config=True)
    allow_system_users = Bool(
        False,
        help="Let a root agent run claims as root and as accounts below UID_MIN of /etc/login.defs"
        " (1000 if it does not say). On, an owner named like a service's account gets that"
        " account's rights. Default: off.",
    ).tag(config=True)
    stop_all_on_exit = Bool(
        False,
        help="End every claim here when the agent is told to exit. Off, they live on and the next"
        " agent adopts them, which is right for an upgrade. Default: off.",
    ).tag(config=True)

    aliases = {  # noqa: RUF012 - as traitlets has it
        "join": "AgentApp.join_url",
        "state": "AgentApp.state_folder",
        "name": "AgentApp.host_name",
        "label": "AgentApp.labels",
        "simulated": "AgentApp.simulated",
        "simulated-host": "AgentApp.simulated_host",
        "address": "AgentApp.address",
        "token-file": "AgentApp.token_file",
        "ca-file": "AgentApp.ca_file",
        "orphan-after": "AgentApp.orphan_after_s",
        "config": "JupyterApp.config_file",
        "log-level": "Application.log_level",
    }
    flags = {  # noqa: RUF012 - as traitlets has it
        "stop-all-on-exit": (
            {"AgentApp": {"stop_all_on_exit": True}},
            "End every claim here when the agent is told to exit.",
        ),
        "allow-plain-http": (
            {"AgentApp": {"allow_plain_http": True}},
            "Join a manager on another machine without encryption.",
        ),
        "run-claims-as-agent": (
            {"AgentApp": {"run_claims_as_agent": True}},
            "Run claims without a user as the agent's own user, also if that is root.",
        ),
    }

    def _log_level_default(self) -> int:
        return logging.INFO

    def _log_default(self) -> logging.Logger:
        return logger

    def start(self) -> None:
        """Run until told to exit; a mistake of its user is one sentence."""
        super().start()
        level = self.log_level
        assert isinstance(level, int), "traitlets has turned a name into its number"
        open_journal(level)
        try:
            asyncio.run(self._run())
        except PoolError as error:
            logger.critical("%s", error)
            sys.exit(1)

    async def _run(self) -> None:
        told = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        target = self._target()
        folder = open_state_folder(Path(self.state_folder or default_state_folder()))
        files = OpenFiles()
        files.raise_limit()
        # Kept open for as long as the process lives.
        take_lock(folder)
        opened = open_devices(self.simulated, host=self.simulated_host)
        if opened.notice:
            logger.warning("%s", opened.notice)
        settings = self._settings(len(opened.devices.list()), folder)
        host = HostAgent(read_host_id(folder), folder, opened.devices, settings, files)
        try:
            await host.start()
            link = Link(target, host, orphan_after_s=self.orphan_after_s)
            await self._keep(link, host, told.wait())
        finally:
            await host.close()

    async def _keep(self, link: Link, host: HostAgent, told: Coroutine[None, None, object]) -> None:
        """Until told to exit, orphaned, not let in, or broken."""
        watching, linked = asyncio.create_task(host.run()), asyncio.create_task(link.run())
        tasks = {watching, linked, asyncio.create_task(told)}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        is_orphan = linked.done() and linked.exception() is None
        if (is_orphan or self.stop_all_on_exit) and not watching.done():
            host.end_all()
            await _until_empty(host)
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    def _target(self) -> LinkTarget:
        if not self.join_url:
            raise BadRequest("No pool to join.", field="join_url", hint="Give its --join URL.")
        check_url(self.join_url, allow_plain_http=self.allow_plain_http)
        return LinkTarget(url=self.join_url, token=self._take_token(), ca_file=self.ca_file)

    def _take_token(self) -> str:
        """Read the token, and take it out of the environment so that no child inherits it."""
        token = os.environ.pop(_TOKEN, "")
        if self.token_file:
            return read_token(self.token_file, otherwise=f"set {_TOKEN}")
        if not token.strip():
            raise BadRequest(
                "The agent has no token.",
                field="token_file",
                hint=f"Set {_TOKEN}, or name a file with --token-file.",
            )
        return token.strip()

    def _settings(self, devices: int, folder: StateFolder) -> HostSettings:
        memory_bytes = usable_memory_bytes()
        return HostSettings(
            facts=HostFacts(
                name=self.host_name or socket.gethostname(),
                address=self.address or _address_towards(self.join_url),
                cpus=usable_cpus(),
                memory_bytes=memory_bytes,
                labels=tuple(self.labels),
            ),
            pace=Pace(
                busy_s=self.sample_interval_s,
                idle_s=self.idle_sample_interval_s,
                verify_within_s=self.verify_within_s,
                tolerated_bytes=self.tolerated_bytes,
                share_grace_s=self.share_grace_s,
            ),
            users=UserRules(
                run_claims_as_agent=self.run_claims_as_agent,
                allow_system_users=self.allow_system_users,
                uid_min=read_uid_min(),
            ),
            environments=self._environments(folder),
            memory_share_bytes=int(memory_bytes * self.host_memory_share / max(1, devices)),
        )

    def _environments(self, folder: StateFolder) -> EnvironmentRules:
        # Claims that are no other user's: what they may run, the agent's user may as well.
        is_own = os.geteuid() != 0 or self.run_claims_as_agent
        kernels_own = self.kernel_environments
        return EnvironmentRules(
            offered=(
                Offered(DEFAULT_ENVIRONMENT, Path(sys.executable)),
                *read_offers(self.environments, must_exist=not folder.has_records),
            ),
            kernels_own=is_own if kernels_own is None else kernels_own,
            kept_s=self.environment_kept_s,
            spares=self.spares,
            looks_as=None if is_own else NOBODY,
        )


def default_state_folder() -> Path:
    """Where the agent's state is when nobody says otherwise."""
    if os.getuid() == 0:
        return Path("/var/lib/gpupool/agent")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gpupool" / "agent"


def _address_towards(url: str) -> str:
    try:
        return address_towards(url)
    except OSError as error:
        raise BadRequest(
            f"The manager's name in {url!r} cannot be resolved: {error.strerror or error}.",
            field="join_url",
            hint="Check it, or give this host's --address.",
        ) from error


async def _until_empty(host: HostAgent) -> None:
    try:
        async with asyncio.timeout(_END_ALL_WITHIN_S):
            await host.emptied.wait()
    except TimeoutError:
        logger.error("Some processes of claims do not end; they are left to the next agent.")  # noqa: TRY400


def main() -> None:
    """Run the agent."""
    AgentApp.launch_instance()
