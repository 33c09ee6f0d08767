"""Builders for the runtime's tests: a claim's certificates, and a host that forks for real."""

import asyncio
import dataclasses
import datetime as dt
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from distributed.security import Security

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.child_socket import ChildSocket
from jupyter_gpupool.agent.stopping import send
from jupyter_gpupool.agent.zygotes import Identity, Zygotes
from jupyter_gpupool.manager.certificates import ClaimSecrets, Party, make_secrets
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.keeping import HOLDER_NAME
from jupyter_gpupool.protocol.launch import (
    Hello,
    HolderLaunch,
    Launch,
    Orders,
    Role,
    SchedulerLaunch,
    SchedulerState,
    Tls,
    WorkerLaunch,
    WorkerState,
)

DEADLINE_S = 30.0
PREFIX = "secret-of-this-claim"
_numbers = itertools.count()


@dataclasses.dataclass
class Claim:
    """What a test knows of one claim on its host."""

    claim_id: str
    secrets: ClaimSecrets
    folder: Path

    def security(self) -> Security:
        """What the claim's own client uses."""
        mine = self.tls(self.secrets.client)
        return Security(
            require_encryption=True,
            tls_ca_file=mine.ca,
            tls_client_cert=mine.certificate,
            tls_client_key=mine.key,
        )

    def tls(self, party: Party) -> Tls:
        """What one party is given."""
        return Tls(ca=self.secrets.ca, certificate=party.certificate, key=party.key)


class Host:
    """The agent's side, without an agent: zygotes, the children's socket, and what they said."""

    prefix = PREFIX

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states: dict[str, list[SchedulerState | WorkerState]] = {}
        self.activities: dict[str, list[Activity]] = {}
        self.ends: dict[int, int] = {}
        self.pids: dict[str, int] = {}
        self.processes: dict[str, procfs.ProcessId] = {}
        self.locks: dict[str, tuple[int, ...]] = {}
        self.hellos: list[Hello] = []
        self.is_admitting = True
        self._changed = asyncio.Event()
        self.zygotes = Zygotes(
            interpreter=Path(sys.executable),
            log_folder=folder,
            exited=self._note_end,
            spares=2,
        )
        self.new_socket()

    def new_socket(self) -> None:
        """A fresh socket at the same path, as a new agent has it."""
        self.socket = ChildSocket(
            self.folder / "agent.sock",
            admit=self._admit,
            heard=self._note_state,
            locks_returned=self._note_locks,
            lively=self._note_activity,
        )

    def a_claim(self) -> Claim:
        """A claim with its folder and credentials."""
        claim_id = f"claim-{next(_numbers)}"
        folder = self.folder / claim_id
        folder.mkdir()
        secrets = make_secrets(dt.datetime.now(dt.UTC), dt.timedelta(days=1))
        return Claim(claim_id, secrets, folder)

    async def fork_scheduler(self, claim: Claim, *, identity: Identity | None = None) -> int:
        """The claim's scheduler."""
        launch = self.launch(claim, Role.SCHEDULER, "")
        return await self.fork(launch, identity=identity)

    async def fork_worker(
        self,
        claim: Claim,
        lease: str,
        *,
        address: str | None = None,
        identity: Identity | None = None,
        lock_fds: tuple[int, ...] = (),
        **options,
    ) -> int:
        """A worker of the claim on a simulated device."""
        launch = self.launch(claim, Role.WORKER, lease, address=address, **options)
        return await self.fork(launch, identity=identity, lock_fds=lock_fds)

    async def fork_holder(
        self, claim: Claim, *, memory_bytes: int = 2**31, quota_bytes: int = 2**32
    ) -> int:
        """The claim's holder, which knows its scheduler."""
        options = HolderLaunch(memory_bytes=memory_bytes, quota_bytes=quota_bytes)
        address = self.state_of(claim).address
        launch = self.launch(claim, Role.HOLDER, HOLDER_NAME, address=address)
        return await self.fork(dataclasses.replace(launch, holder=options))

    async def fork(self, launch: Launch, *, identity=None, lock_fds=()) -> int:
        """Any launch; its log is named after it."""
        if identity is not None:
            os.chown(launch.folder, identity.uid, identity.gid)
        log = os.open(self.log_of(launch), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            pid = await self.zygotes.fork(launch, identity=identity, log_fd=log, lock_fds=lock_fds)
        finally:
            os.close(log)
        self.pids[f"{launch.claim_id}/{launch.lease_id}"] = pid
        # One that has ended already has no row, and is nothing to end.
        if (row := procfs.read_row(pid)) is not None and pid not in self.ends:
            self.processes[f"{launch.claim_id}/{launch.lease_id}"] = row.id
        return pid

    def log_of(self, launch: Launch) -> Path:
        """Where that process writes."""
        return self.folder / f"{launch.claim_id}-{launch.lease_id or 'scheduler'}.log"

    def launch(
        self,
        claim: Claim,
        role: Role,
        lease: str,
        *,
        address=None,
        env=None,
        protocol="tls",
        listen="127.0.0.1",
        prefix=PREFIX,
        temporary="",
        **options,
    ) -> Launch:
        """What the agent would hand over."""
        worker = {
            "device": "SIM-0",
            "simulated": True,
            "device_memory_bytes": 2**30,
            "nthreads": 1,
            "memory_limit_bytes": 2**30,
            "device_memory_limit": "default",
        }
        return Launch(
            role=role,
            claim_id=claim.claim_id,
            lease_id=lease,
            name=lease,
            listen=listen,
            protocol=protocol,
            folder=str(claim.folder),
            agent_socket=str(self.folder / "agent.sock"),
            tls=claim.tls(
                claim.secrets.scheduler if role is Role.SCHEDULER else claim.secrets.worker
            ),
            env=env or {},
            temporary=temporary,
            scheduler_address=address,
            worker=WorkerLaunch(**(worker | options)) if role is Role.WORKER else None,
            scheduler=SchedulerLaunch(dashboard_prefix=prefix) if role is Role.SCHEDULER else None,
        )

    async def until(self, holds: Callable[[], object], deadline_s: float = DEADLINE_S):
        """Wait for something the children say or do.

        Returns:
            What `holds` said.
        """
        async with asyncio.timeout(deadline_s):
            while not (result := holds()):
                self._changed.clear()
                await self._changed.wait()
        return result

    def state_of(self, claim: Claim, lease: str = ""):
        """The last state of one process, or None."""
        said = self.states.get(f"{claim.claim_id}/{lease}")
        return said[-1] if said else None

    async def up(self, claim: Claim, *leases: str, **worker) -> SchedulerState:
        """A scheduler and its workers, started at once as the agent does.

        Returns:
            The scheduler's state when all of them are registered.
        """
        await asyncio.gather(
            self.fork_scheduler(claim, identity=worker.get("identity")),
            *(self.fork_worker(claim, lease, **worker) for lease in leases),
        )
        state = await self.until(lambda: self.state_of(claim))
        for lease in leases:
            self.order_address(claim, lease, state.address)
        return await self.until(
            lambda: self.is_complete(claim, leases) and self.state_of(claim),
        )

    def order_address(self, claim: Claim, lease: str, address: str) -> None:
        """Tell a worker its scheduler."""
        self.socket.order(Role.WORKER, claim.claim_id, lease, Orders(scheduler_address=address))

    def is_complete(self, claim: Claim, leases) -> bool:
        """Whether the scheduler has exactly these workers."""
        state = self.state_of(claim)
        return state is not None and set(state.workers) == set(leases)

    def pid_of(self, claim: Claim, lease: str = "") -> int:
        """The process of the scheduler, or of a lease's worker."""
        return self.pids[f"{claim.claim_id}/{lease}"]

    async def end_of(self, claim: Claim, lease: str = "", deadline_s: float = DEADLINE_S) -> int:
        """Wait for a process to end.

        Returns:
            Its exit status.
        """
        pid = self.pid_of(claim, lease)
        await self.until(lambda: pid in self.ends, deadline_s)
        return self.ends[pid]

    def kill_all(self, claim: Claim | None = None) -> None:
        """End what still runs, of one claim or of all."""
        for name, process in self.processes.items():
            if claim is None or name.startswith(f"{claim.claim_id}/"):
                send(process, signal.SIGKILL)

    async def down(self) -> None:
        """Leave nothing behind."""
        await self.zygotes.close()
        await self.socket.close()
        self.kill_all()
        for fd in itertools.chain.from_iterable(self.locks.values()):
            os.close(fd)

    def _admit(self, hello: Hello, pid: int, uid: int) -> bool:
        self.hellos.append(hello)
        self._changed.set()
        return self.is_admitting

    def _note_state(self, hello: Hello, state: SchedulerState | WorkerState) -> None:
        self.states.setdefault(f"{hello.claim_id}/{hello.lease_id}", []).append(state)
        self._changed.set()

    def _note_activity(self, hello: Hello, activity: Activity) -> None:
        self.activities.setdefault(hello.claim_id, []).append(activity)
        self._changed.set()

    def _note_locks(self, hello: Hello, descriptors: Sequence[int]) -> None:
        for older in self.locks.pop(hello.lease_id, ()):
            os.close(older)
        self.locks[hello.lease_id] = tuple(descriptors)
        self._changed.set()

    def _note_end(self, pid: int, status: int) -> None:
        self.ends[pid] = status
        self._changed.set()


@pytest.fixture(scope="module")
def host_folder() -> Iterator[Path]:
    """A folder with a short path, which other users may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="gpupool-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def new_host(host_folder: Path) -> Callable[[], Host]:
    """Makes a host that is not started yet."""
    return lambda: Host(host_folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(new_host: Callable[[], Host]) -> AsyncIterator[Host]:
    """A host with a warm zygote."""
    host = new_host()
    await host.socket.start()
    await host.zygotes.warm(None)
    try:
        yield host
    finally:
        await host.down()


@pytest_asyncio.fixture(loop_scope="module")
async def claim(host: Host) -> AsyncIterator[Claim]:
    """A claim whose processes do not outlive the test."""
    claim = host.a_claim()
    yield claim
    host.kill_all(claim)
    host.is_admitting = True
