"""A whole pool in a private folder: a real manager and a real agent, each to be killed alone.

Made by the fixtures in conftest.py. Whatever happens, `close` ends every process that carries the
pool's mark, and a failing wait shows the logs.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
from waiting import eventually

from jupyter_gpupool.agent.state_folder import StateFolder
from jupyter_gpupool.agent.temporary import forget_temporary
from jupyter_gpupool.pool.ids import ClaimId

from .api import Api, Journal
from .devices import TestDevices
from .launching import Launcher, Setup, free_port, tail
from .processes import Process, carrying
from .user import User
from .watchers import Record, Watch, read_records


class RunningPool:
    """One manager, one agent, and all that they start."""

    def __init__(self, folder: Path, devices: TestDevices, setup: Setup | None = None) -> None:
        self.folder = folder
        self.devices = devices
        self.setup = setup or Setup()
        self.port = free_port()
        self.journal = Journal()
        self.watch = Watch(self.records, devices.contexts)
        self._launcher = Launcher(folder, self.setup)
        self._apis: dict[str, Api] = {}
        self._users: list[User] = []
        self.manager: Process | None = None
        self.agent: Process | None = None

    # --- start and end

    def start(self) -> "RunningPool":
        """Bring up both, until the agent's devices may be claimed."""
        self.start_manager()
        self.start_agent()
        self.watch.start()
        return self

    def start_manager(self, **environment: str) -> Process:
        """Start a manager and wait until it answers."""
        self.manager = self.spawn_manager(**environment)
        self.wait_answering()
        return self.manager

    def spawn_manager(self, port: int | None = None, **environment: str) -> Process:
        """Start a manager's process and come back at once."""
        options = (f"--port={port or self.port}", f"--state={self.manager_state}")
        users = f"--ManagerApp.run_as_users={self.setup.os_user is not None}"
        more = (users, *self.setup.manager_options)
        command = ["-m", "jupyter_gpupool.manager", *options, *more]
        return self._launcher.spawn("manager", command, environment)

    def start_agent(self, **environment: str) -> Process:
        """Start an agent and wait until its host is connected."""
        self.agent = self.spawn_agent(**environment)
        self.wait_joined(self.agent)
        return self.agent

    def spawn_agent(self, **environment: str) -> Process:
        """Start an agent's process and come back at once."""
        options = (f"--join={self.url}", f"--state={self.agent_state}")
        users = f"--AgentApp.run_claims_as_agent={self.setup.os_user is None}"
        more = (users, *self.devices.agent_options(), *self.setup.agent_options)
        command = ["-m", "jupyter_gpupool.agent", *options, *more]
        environment = {"GPUPOOL_TOKEN": self._agent_token(), **environment}
        return self._launcher.spawn("agent", command, {**self.devices.environment(), **environment})

    def close(self) -> None:
        """End everything this pool has started, and only that."""
        self.watch.stop()
        for user in self._users:
            user.end()
        for api in self._apis.values():
            api.close()
        self._launcher.end_all()
        for path in (self.agent_state / "claims").glob("c-*"):
            forget_temporary(StateFolder(self.agent_state), ClaimId(path.name))

    # --- places

    @property
    def mark(self) -> str:
        """What every process of this pool has in its environment, whoever started it."""
        return self._launcher.mark

    @property
    def url(self) -> str:
        """Where its manager listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def manager_state(self) -> Path:
        """The manager's state folder."""
        return self.folder / "manager"

    @property
    def agent_state(self) -> Path:
        """The agent's state folder."""
        return self.folder / "agent"

    # --- people

    @property
    def api(self) -> Api:
        """The admin's way in; its token is the one the manager wrote at its first start."""
        if "admin" not in self._apis:
            file = self.manager_state / "admin-token"
            eventually(file.exists, 5, "the admin's token is written")
            token = file.read_text().strip()
            self._apis["admin"] = Api(self.url, token, self.journal)
        return self._apis["admin"]

    def api_of(self, user: str) -> Api:
        """A plain user's way in."""
        if user not in self._apis:
            token = self.api.post("/tokens", {"user": user, "os_user": self.setup.os_user})[
                "secret"
            ]
            self._apis[user] = Api(self.url, token, self.journal)
        return self._apis[user]

    def user(self, api: Api | None = None) -> User:
        """A user's script, in a process of its own."""
        token = self.folder / "run" / f"token-{len(self._users)}"
        token.touch(mode=0o600)
        token.write_text((api or self.api).token)
        place = {"GPUPOOL_URL": self.url, "GPUPOOL_TOKEN_FILE": str(token)}
        log = self.folder / "logs" / f"user-{len(self._users)}.log"
        self._users.append(User(self._launcher.environment(place), log))
        return self._users[-1]

    def _agent_token(self) -> str:
        path = self.folder / "run" / "agent-token"
        if not path.exists():
            answer = self.api.post("/tokens", {"user": "agents", "role": "agent"})
            path.touch(mode=0o600)
            path.write_text(answer["secret"])
        return path.read_text()

    # --- processes

    def records(self) -> list[Record]:
        """What the agent has written down."""
        return read_records(self.agent_state)

    def zygotes(self) -> list[Process]:
        """The agent's zygotes: its children that run the zygote's module."""
        ours = carrying(self.mark)
        agents = {0 if self.agent is None else self.agent.pid}
        named = [found for found in ours if "jupyter_gpupool.runtime.zygote" in found.command]
        return [found for found in named if found.parent in agents]

    def scheduler_of(self, claim_id: str) -> Process:
        """The claim's scheduler, once there is one."""
        return self._forked(claim_id, "scheduler")

    def worker_of(self, claim_id: str) -> Process:
        """One of the claim's workers, once there is one."""
        return self._forked(claim_id, "worker")

    def holder_of(self, claim_id: str) -> Process:
        """What keeps the claim's results while it hibernates, once there is one."""
        return self._forked(claim_id, "holder")

    def workers_of(self, claim_id: str) -> list[Process]:
        """The claim's live workers."""
        return [
            record.process
            for record in self.records()
            if (record.claim_id, record.role) == (claim_id, "worker") and record.process.lives
        ]

    def _forked(self, claim_id: str, role: str) -> Process:
        def look() -> Process | None:
            for record in self.records():
                if (record.claim_id, record.role) == (claim_id, role) and record.process.lives:
                    return record.process
            return None

        return eventually(look, 15, f"{claim_id} has a {role}")  # type: ignore[return-value]

    # --- waiting

    def wait_answering(self) -> None:
        """Wait until the manager answers."""
        eventually(self._answers, 30, "the manager answers")

    def wait_joined(self, agent: Process | None = None) -> None:
        """Wait until this agent's host is connected and its devices are known."""

        def look() -> bool:
            if agent is not None:
                assert agent.lives, "the agent has ended"
            hosts = self.api.get("/hosts")
            return any(host["phase"] == "connected" and host["devices"] for host in hosts)

        eventually(look, 30, "the agent has joined")

    def wait_phase(self, claim_id: str, *phases: str, deadline_s: float = 20) -> str:
        """Wait until the claim is in one of these phases."""

        def look() -> str:
            phase = self.api.phase(claim_id)
            return phase if phase in phases else ""

        return eventually(
            look, deadline_s, f"{claim_id} is {' or '.join(phases)}", context=self.tell(claim_id)
        )

    def wait_workers(self, claim_id: str, count: int, deadline_s: float = 20) -> None:
        """Wait until this many of the claim's workers are registered, and no more are leased."""

        def look() -> bool:
            leases = self.api.view(claim_id).get("leases", ())
            live = [lease for lease in leases if lease["phase"] != "ended"]
            return [lease["phase"] for lease in live] == ["running"] * count

        eventually(look, deadline_s, f"{claim_id} has {count} workers", context=self.tell(claim_id))

    def wait_free(self, count: int, deadline_s: float = 20) -> None:
        """Wait until this many devices may be leased."""
        eventually(
            lambda: self.api.get("/status")["free"] == count,
            deadline_s,
            f"{count} devices are free",
            context=self._devices,
        )

    def end(self, claim_id: str, deadline_s: float = 20) -> str:
        """Release a claim, wait for its end and see that nothing of it is left; its reason."""
        self.api.release(claim_id)
        return self.wait_ended(claim_id, deadline_s)

    def wait_ended(self, claim_id: str, deadline_s: float = 20) -> str:
        """Wait for a claim's end and see that nothing of it is left; its reason."""
        self.wait_phase(claim_id, "ended", deadline_s=deadline_s)
        left = self.watch.left_of(claim_id)
        assert not left, f"{claim_id} has ended, but these run: {left}"
        return str(self.api.view(claim_id)["reason"])

    # --- the promises

    def check(self) -> None:
        """No device was ever leased beyond one, and nothing acknowledged is forgotten.

        Raises:
            AssertionError: With what was seen and the logs.
        """
        self.watch.assert_exclusive()
        unknown = [c for c in self.journal.ids if not self.api.try_get(f"/claims/{c}").is_success]
        assert not unknown, f"acknowledged, but unknown now: {unknown}"
        held: dict[str, dict[str, float]] = {}
        for claim in self.api.claims():
            for lease in claim["leases"]:
                for device in lease["devices"] if lease["phase"] != "ended" else ():
                    held.setdefault(device, {})[lease["id"]] = lease["share"]
        beyond = {device: x for device, x in held.items() if round(sum(x.values()), 6) > 1}
        assert not beyond, f"leased beyond one: {beyond}"

    def tell(self, claim_id: str) -> "Story":
        """A claim's story and the logs, for a failing wait."""
        return Story(self, claim_id)

    def logs(self) -> str:
        """The ends of all logs."""
        logs = [*(self.folder / "logs").glob("*.log"), *(self.agent_state / "logs").rglob("*.log")]
        newest = sorted(logs, key=lambda path: path.stat().st_mtime)[-10:]
        return "\n".join(f"--- {path.name}\n{tail(path)}" for path in newest)

    # --- private

    def _devices(self) -> str:
        kept = ("uuid", "health", "problem", "free", "leased", "claim", "foreign")
        return "\n".join(str({k: d[k] for k in kept}) for d in self.api.get("/devices"))

    def _answers(self) -> bool:
        if self.manager is not None:
            assert self.manager.lives, "the manager has ended"
        try:
            return httpx.get(f"{self.url}/health", timeout=2, trust_env=False).is_success
        except httpx.TransportError:
            return False


MakePool = Callable[..., RunningPool]
"""The fixture `make_pool`: devices and a `Setup` in, a pool that is not yet started out."""


@dataclass(frozen=True, slots=True)
class Story:
    """Told only when a wait fails; the logs are added to every failure by conftest.py."""

    pool: RunningPool
    claim_id: str

    def __call__(self) -> str:
        """The claim and what its user was told."""
        try:
            view = self.pool.api.view(self.claim_id)
            reasons = self.pool.api.reasons(self.claim_id)
        except (httpx.HTTPError, AssertionError) as error:
            return f"{error!r}"
        leases = [f"{le['id']} {le['phase']} {le['device']}" for le in view["leases"]]
        told = "\n".join(f"  {reason[:300]}" for reason in reasons)
        return f"{view['phase']}, leases {leases}\n{told}"


def strike(target: Process, number: signal.Signals) -> None:
    """Signal a process and wait until the signal has done its work."""
    target.send(number)
    if number is signal.SIGKILL:
        assert target.wait_gone(5), f"{target.pid} survives SIGKILL"
    elif number is signal.SIGSTOP:
        eventually(lambda: target.is_stopped or not target.lives, 5, f"{target.pid} is stopped")
