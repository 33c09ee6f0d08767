"""`jupyter gpupool manager` and `python -m jupyter_gpupool.manager`: settings and start, no more.

Every setting may stand in `jupyter_gpupool_config.py` as `c.ManagerApp.name = value`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_core.paths import jupyter_config_path, jupyter_runtime_dir
from traitlets import Bool, Float, Int, Unicode
from traitlets.config import Application
from traitlets.config.application import catch_config_error

from jupyter_gpupool import __version__
from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.pool.units import parse_duration

from .head_start import begin
from .joining import take_or_join
from .logs import set_up_logs
from .policy_file import read_policy_file
from .runtime_file import default_runtime_file, this_host
from .settings import Settings
from .to_serve import Embedded, Serving, Tls

if TYPE_CHECKING:
    from collections.abc import Callable


_EMBEDDED_IDLE_S = 600.0
_ORPHAN_S, _EMBEDDED_ORPHAN_S = 3600.0, 600.0


class ManagerApp(Application):
    """Decides who gets which devices, and keeps the books of the pool."""

    name = "jupyter-gpupool-manager"
    description = "The pool's manager: claims, leases, hosts and events of one pool of GPUs."
    version = __version__

    ip = Unicode(
        "127.0.0.1",
        help="IP address to listen on. Anything but loopback needs certfile and keyfile, for"
        " tokens travel in every request. Default: 127.0.0.1, this machine alone.",
    ).tag(config=True)
    port = Int(
        7866,
        min=0,
        max=65535,
        help="TCP port to listen on; 0 takes any free one. An embedded manager takes the port it"
        " had last, else any. Default: 7866.",
    ).tag(config=True)
    state_folder = Unicode(
        help="Folder of the database, keys and first token; private, on a local disk that honours"
        " fsync. An embedded manager heeds --state alone. Default: /var/lib/gpupool/manager for"
        " root, else gpupool/manager in XDG_STATE_HOME; embedded embedded/HOST/manager beside it,"
        " HOST being a mark of this host."
    ).tag(config=True)
    database_url = Unicode(
        help="SQLAlchemy URL of the database, such as postgresql+psycopg://… with credentials from"
        " the environment. Default: empty, a SQLite file in the state folder."
    ).tag(config=True)
    certfile = Unicode(
        help="PEM file with the certificate (chain) for TLS. Default: empty, no TLS."
    ).tag(config=True)
    keyfile = Unicode(help="PEM file with the key of certfile. Default: empty.").tag(config=True)
    host_lost_after_s = Float(
        30.0,
        min=3.0,
        max=86_400.0,
        help="Seconds of silence after which a host is lost and its leases are given up. Shorter"
        " frees claims from dead hosts sooner, longer forgives slow networks. Default: 30.",
    ).tag(config=True)
    longest_life = Unicode(
        "30d",
        help="How long a claim may live at most, such as 12h or 30d; also the life of its"
        " certificates. Default: 30d.",
    ).tag(config=True)
    orphan_after_s = Float(
        allow_none=True,
        default_value=None,
        min=1.0,
        help="Seconds after which an agent that does not hear the manager ends its claims and"
        " itself. Longer survives longer outages. Default: None, 3600, embedded 600.",
    ).tag(config=True)
    start_within_s = Float(
        120.0,
        min=1.0,
        max=86_400.0,
        help="Seconds a claim's start may take before it is given up and tried elsewhere. Shorter"
        " frees devices from hanging starts sooner, longer suits slow disks and imports. Default:"
        " 120.",
    ).tag(config=True)
    most_claims_a_user = Int(
        1000,
        min=1,
        help="How many claims of one user may live at a time, waiting ones included. It bounds the"
        " manager's memory. Default: 1000.",
    ).tag(config=True)
    longest_keep_alive = Unicode(
        "2h",
        help="For how long at a time a user may have a claim not taken as idle where no rule of the"
        " policy is for it, such as 2h. Shorter frees forgotten devices sooner, longer suits long"
        " pauses for thought. Default: 2h.",
    ).tag(config=True)
    recorded = Unicode(
        "14d",
        help="For how long what was seen of claims is kept, for dry runs of policies, such as 14d."
        " Longer costs disk: up to 8 KiB an hour and claim. Default: 14d.",
    ).tag(config=True)
    retention = Unicode(
        "30d",
        help="How long ended claims and events are kept, such as 30d. Longer costs disk alone."
        " Default: 30d.",
    ).tag(config=True)
    policy_file = Unicode(
        help="TOML file with the pool's policy: queues with guarantees, weights and limits, who"
        " belongs to which, priorities, and the rules of scheduling. Read at the start and kept in"
        " the database as a revision; a wrong one stops the start. Default: empty, the policy"
        " applied last, else one queue for everybody without limits. An embedded manager heeds"
        " the command line's alone."
    ).tag(config=True)
    run_as_users = Bool(
        True,
        help="Run each claim as its owner's operating system user; false runs all as the agent's"
        " own user, which a root agent refuses without its own setting run_claims_as_agent."
        " Embedded managers always use the latter. Default: true.",
    ).tag(config=True)
    embedded = Bool(
        False,
        help="Be one user's own pool on this machine: write the runtime file, keep an agent, end"
        " when unused. Such a manager listens on loopback without TLS, on a SQLite file in a state"
        " folder of its own, whatever stands here for another manager. Default: false.",
    ).tag(config=True)
    runtime_file = Unicode(
        help="File by which clients find an embedded pool. Default: gpupool-HOST.json in the"
        " Jupyter runtime folder, HOST being a mark of this host."
    ).tag(config=True)
    agent_state_folder = Unicode(
        help="State folder of an embedded manager's agent. Default: agent, beside the manager's."
    ).tag(config=True)
    simulated = Int(
        allow_none=True,
        default_value=None,
        help="How many simulated devices an embedded manager's agent has. Default: None, real"
        " devices, or simulated ones where there are none.",
    ).tag(config=True)
    stop_all_on_exit = Bool(
        False,
        help="On SIGTERM an embedded manager ends all claims and its agent first, for up to 20"
        " seconds. Default: false, what runs lives on.",
    ).tag(config=True)
    ends_with = Int(
        allow_none=True,
        default_value=None,
        min=1,
        help="Number of the process that an embedded manager belongs to: when that has ended, even"
        " by a kill, it acts as on SIGTERM. Default: None, it outlives whoever started it.",
    ).tag(config=True)
    idle_exit_after_s = Float(
        _EMBEDDED_IDLE_S,
        min=0.0,
        help="Seconds without claims and requests after which an embedded manager ends; 0 never."
        " The next use starts it again in about a second. Default: 600.",
    ).tag(config=True)

    aliases = {  # noqa: RUF012 - traitlets reads it from the class
        "ip": "ManagerApp.ip",
        "port": "ManagerApp.port",
        "state": "ManagerApp.state_folder",
        "database": "ManagerApp.database_url",
        "certfile": "ManagerApp.certfile",
        "keyfile": "ManagerApp.keyfile",
        "runtime-file": "ManagerApp.runtime_file",
        "agent-state": "ManagerApp.agent_state_folder",
        "simulated": "ManagerApp.simulated",
        "ends-with": "ManagerApp.ends_with",
        "policy": "ManagerApp.policy_file",
        "idle-exit-after": "ManagerApp.idle_exit_after_s",
        "log-level": "Application.log_level",
    }
    flags = {  # noqa: RUF012 - as above
        "embedded": ({"ManagerApp": {"embedded": True}}, "Be one user's own pool."),
        "stop-all-on-exit": (
            {"ManagerApp": {"stop_all_on_exit": True}},
            "End all claims and the agent on SIGTERM.",
        ),
    }

    @catch_config_error
    def initialize(self, argv: list[str] | None = None) -> None:
        """Read the command line, then the configuration file, then the command line again."""
        self.parse_command_line(argv)
        command_line = deepcopy(self.config)
        self._said = frozenset(command_line.get("ManagerApp", {}))
        self.load_config_file("jupyter_gpupool_config", jupyter_config_path()[::-1])
        self.update_config(command_line)

    def start(self) -> None:
        """Run until told to stop; what cannot start says so in one sentence."""
        set_up_logs(str(self.log_level) if isinstance(self.log_level, str) else "INFO")
        try:
            self._run()
        except PoolError as error:
            sys.stderr.write(f"{error}\n")
            self.exit(1)
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            sys.stderr.write(f"The manager cannot go on: {what}.\n")
            self.exit(1)

    def _run(self) -> None:
        serving = self._serving()
        # Until the loop hears signals itself, one must not pass by what is begun here.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        begun = None
        if serving.embedded is not None:
            folder = take_or_join(serving.state, serving.embedded.runtime_file)
            if folder is None:
                return
            begun = begin(serving, serving.embedded, folder)
        try:
            from .serving import serve  # noqa: PLC0415 - `--help` needs none of the service

            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(serve(serving, begun))
        finally:
            if begun is not None:
                begun.abandon()

    def _serving(self) -> Serving:
        if self.embedded:
            return self._serving_embedded()
        return Serving(
            ip=self.ip,
            port=self.port,
            state=Path(self.state_folder or default_state_folder()),
            settings=self._settings(),
            database_url=self.database_url or None,
            tls=self._tls(),
        )

    def _serving_embedded(self) -> Serving:
        """What the configuration file says for the organisation's manager is not for this one."""
        chosen = self.state_folder if "state_folder" in self._said else ""
        state = Path(chosen or default_embedded_folder() / "manager")
        return Serving(
            ip="127.0.0.1",
            port=self.port if "port" in self._said else 0,
            state=state,
            settings=self._settings(),
            embedded=self._embedded(state),
            idle_exit_after_s=self.idle_exit_after_s or None,
        )

    def _settings(self) -> Settings:
        default_orphan_s = _EMBEDDED_ORPHAN_S if self.embedded else _ORPHAN_S
        return Settings(
            host_lost_after_s=self.host_lost_after_s,
            longest_life=parse_duration(self.longest_life, field="longest_life"),
            orphan_after_s=self.orphan_after_s or default_orphan_s,
            retention=parse_duration(self.retention, field="retention"),
            longest_keep_alive=parse_duration(self.longest_keep_alive, field="longest_keep_alive"),
            recorded=parse_duration(self.recorded, field="recorded"),
            run_as_users=self.run_as_users and not self.embedded,
            start_within_s=self.start_within_s,
            most_claims_a_user=self.most_claims_a_user,
            policy_source=read_policy_file(self._policy_path()),
            policy_file=self._policy_path(),
        )

    def _policy_path(self) -> str:
        """The file's own path; "" if none is named, or it is named for another manager."""
        is_ours = not self.embedded or "policy_file" in self._said
        if not (is_ours and self.policy_file):
            return ""
        return str(Path(self.policy_file).expanduser().absolute())

    def _tls(self) -> Tls | None:
        if not self.certfile and not self.keyfile:
            return None
        return Tls(certfile=Path(self.certfile), keyfile=Path(self.keyfile or self.certfile))

    def _embedded(self, state: Path) -> Embedded:
        chosen = Path(self.runtime_file) if self.runtime_file else None
        return Embedded(
            runtime_file=chosen or default_runtime_file(Path(jupyter_runtime_dir())),
            agent_state=Path(self.agent_state_folder or state.parent / "agent"),
            simulated=self.simulated,
            stop_all_on_exit=self.stop_all_on_exit,
            ends_with=self.ends_with,
        )


def default_state_folder() -> Path:
    """Where a manager keeps its state unless told otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/gpupool/manager")
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "gpupool" / "manager"


def default_embedded_folder() -> Path:
    """Where this user's embedded manager and its agent keep theirs: on this host alone.

    A home may be shared by many hosts, and each has its own embedded pool.
    """
    return default_state_folder().parent / "embedded" / this_host()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - a faster loop where it is installed
    except ImportError:
        return None
    return uvloop.new_event_loop
