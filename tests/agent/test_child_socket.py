"""The agent's socket against children, and against anybody else on the host."""

import asyncio
import contextlib
import dataclasses
import errno
import fcntl
import os
import socket
import stat
from pathlib import Path

import pytest

from jupyter_gpupool.agent import child_connection
from jupyter_gpupool.agent.child_socket import ChildSocket
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.keeping import Keeping, KeepPhase, Unkept, UnkeptReason, Wish
from jupyter_gpupool.protocol.launch import (
    MOST_LOCKS,
    Hello,
    Lively,
    Orders,
    Role,
    SchedulerState,
    WorkerState,
    decode,
)

DEADLINE_S = 10.0
WORKER = Hello(role=Role.WORKER, claim_id="claim", lease_id="lease")
SCHEDULER = Hello(role=Role.SCHEDULER, claim_id="claim", lease_id="")
LISTENS = SchedulerState(address="tls://h:1", dashboard_port=None, workers=())
BUSY = Activity(processing=3, begun=70_000, clients=1, quiet_s=0.5)
REFUSED = Keeping(
    phase=KeepPhase.REFUSED,
    wish=Wish.HIBERNATED,
    surveyed=True,
    result_bytes=2**40,
    unkept=(Unkept(key="counter-1", reason=UnkeptReason.ACTOR),),
    unkept_count=1,
)


class Agent:
    """Whoever owns the socket: notes what it is told."""

    def __init__(self, path) -> None:
        self.said: list[tuple[str, object]] = []
        self.asked: list[tuple[int, int]] = []
        self.is_admitting = True
        self.locks: list[int] = []
        self._changed = asyncio.Event()
        self.socket = ChildSocket(
            path,
            admit=self._admit,
            heard=lambda hello, state: self._note("heard", state),
            locks_returned=lambda hello, fds: self._note("locks", fds),
            lively=lambda hello, activity: self._note("lively", activity),
        )

    def _admit(self, hello, pid, uid):
        self.asked.append((pid, uid))
        return self.is_admitting

    def _note(self, what, value):
        self.said.append((what, value))
        self._changed.set()

    def all(self, what):
        return [value for kind, value in self.said if kind == what]

    async def until(self, holds):
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def next(self, what):
        async with asyncio.timeout(DEADLINE_S):
            while not (found := [value for kind, value in self.said if kind == what]):
                self._changed.clear()
                await self._changed.wait()
        return found[-1]


@pytest.fixture
async def agent(tmp_path):
    agent = Agent(tmp_path / "agent.sock")
    await agent.socket.start()
    yield agent
    await agent.socket.close()


class Child:
    """The other end, speaking bytes."""

    def __init__(self, reader, writer) -> None:
        self.reader, self.writer = reader, writer

    def say(self, *lines) -> None:
        self.writer.write(b"".join(x if isinstance(x, bytes) else x.encode() for x in lines))

    async def hear(self):
        async with asyncio.timeout(DEADLINE_S):
            line = await self.reader.readline()
        return decode(line) if line else None

    async def ends(self) -> bool:
        """Whatever it hears before, its connection ends."""
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(DEADLINE_S):
                await self.reader.read()
        return True

    async def is_turned_away(self) -> bool:
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
async def connect(agent, tmp_path):
    made = []

    async def connect():
        child = Child(*await asyncio.open_unix_connection(tmp_path / "agent.sock"))
        made.append(child)
        return child

    yield connect
    for child in made:
        child.writer.close()


async def test_admitted_child_is_heard(agent, connect):
    """Hello, then states; the agent is asked with the kernel's word on who it is."""
    child = await connect()
    child.say(WORKER, WorkerState(registered=True))
    assert await agent.next("heard") == WorkerState(registered=True)
    assert agent.asked == [(os.getpid(), os.getuid())]


async def test_admission_is_answered_with_whole_orders(agent, connect):
    """A child always hears something: it then knows that it is known."""
    child = await connect()
    child.say(WORKER)
    assert await child.hear() == Orders()


async def test_orders_reach_a_connected_child(agent, connect):
    """New orders are sent at once."""
    child = await connect()
    child.say(SCHEDULER)
    await child.hear()
    agent.socket.order(Role.SCHEDULER, "claim", "", Orders(keep_workers=2))
    assert await child.hear() == Orders(keep_workers=2)


async def test_orders_are_repeated_on_the_next_connection(agent, connect):
    """A child that was away hears its last orders, whole."""
    agent.socket.order(Role.WORKER, "claim", "lease", Orders(scheduler_address="tls://h:1"))
    for _ in range(2):
        child = await connect()
        child.say(WORKER)
        assert await child.hear() == Orders(scheduler_address="tls://h:1")


async def test_forgotten_orders_are_not_repeated(agent, connect):
    """Who is gone for good leaves nothing behind."""
    agent.socket.order(Role.WORKER, "claim", "lease", Orders(scheduler_address="tls://h:1"))
    agent.socket.forget(Role.WORKER, "claim", "lease")
    child = await connect()
    child.say(WORKER)
    assert await child.hear() == Orders()


async def test_locks_come_back_with_hello(agent, tmp_path):
    """The descriptors beside a hello are handed on, open and in their order."""
    locks = [os.open(tmp_path / f"lock-{n}", os.O_RDWR | os.O_CREAT) for n in range(MOST_LOCKS)]
    fcntl.flock(locks[0], fcntl.LOCK_EX)
    with socket.socket(socket.AF_UNIX) as child:
        child.connect(str(tmp_path / "agent.sock"))
        socket.send_fds(child, [WORKER.encode()], locks)
        returned = await agent.next("locks")
    assert [os.fstat(fd).st_ino for fd in returned] == [os.fstat(fd).st_ino for fd in locks]
    assert all(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC for fd in returned)
    for fd in (*locks, *returned):
        os.close(fd)


async def test_newer_connection_replaces_the_older(agent, connect):
    """A child that reconnects before its old connection is seen to end goes on hearing orders."""
    older, newer = await connect(), await connect()
    older.say(WORKER)
    await older.hear()
    newer.say(WORKER)
    await newer.hear()
    assert await older.is_turned_away()
    agent.socket.order(Role.WORKER, "claim", "lease", Orders(scheduler_address="tls://h:1"))
    assert await newer.hear() == Orders(scheduler_address="tls://h:1")


async def test_child_that_is_not_admitted_is_turned_away(agent, connect):
    """Nothing it says is passed on."""
    agent.is_admitting = False
    child = await connect()
    child.say(WORKER, WorkerState(registered=True))
    assert await child.is_turned_away()
    assert agent.said == []


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(b"nonsense\n", id="no JSON"),
        pytest.param(b"[1]\n", id="no object"),
        pytest.param(b"\xff\xfe\n", id="no text"),
        pytest.param(b"[" * 50_000 + b"\n", id="deep nesting"),
        pytest.param(b'{"is": "Hello"}\n', id="nothing but a name"),
        pytest.param(
            b'{"is": "Hello", "role": "king", "claim_id": "", "lease_id": ""}\n', id="role"
        ),
        pytest.param(
            b'{"is": "Hello", "role": "worker", "claim_id": 1, "lease_id": ""}\n', id="wrong type"
        ),
        pytest.param(WorkerState(registered=True).encode(), id="state before hello"),
        pytest.param(Orders(keep_workers=0).encode(), id="orders are not a child's to give"),
        pytest.param(WORKER.encode() + LISTENS.encode(), id="a worker's word on the scheduler"),
        pytest.param(
            WORKER.encode() + Lively(activity=Activity()).encode(), id="a worker is no scheduler"
        ),
        pytest.param(WORKER.encode() * 2, id="hello twice"),
        pytest.param(b"x" * 100_000, id="a line without end"),
        pytest.param(
            SCHEDULER.encode()
            + b'{"is": "SchedulerState", "address": 5, "dashboard_port": null, "workers": []}\n',
            id="an address that is none",
        ),
        pytest.param(
            SCHEDULER.encode()
            + b'{"is": "SchedulerState", "address": "", "dashboard_port": true, "workers": [[]]}\n',
            id="names that are none",
        ),
    ],
)
async def test_junk_ends_its_own_connection_alone(agent, connect, junk):
    """Whatever a user's process sends, other children are still heard."""
    rascal, good = await connect(), await connect()
    rascal.say(junk)
    assert await rascal.ends()
    good.say(SCHEDULER, LISTENS)
    assert await agent.next("heard") == LISTENS


def _opened() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_surplus_descriptors_are_closed(agent, tmp_path):
    """Descriptors that nobody asked for do not pile up in the agent."""
    before = _opened()
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as rascal:
            rascal.connect(str(tmp_path / "agent.sock"))
            socket.send_fds(rascal, [b"{"], [0, 1, 2])
            await asyncio.sleep(0)
    child = Child(*await asyncio.open_unix_connection(tmp_path / "agent.sock"))
    child.say(WORKER)
    await child.hear()
    child.writer.close()
    assert _opened() <= before + 3


async def test_crowd_of_one_user_is_limited(agent, connect, monkeypatch):
    """One user's idle connections are bounded, and end by themselves."""
    monkeypatch.setattr("jupyter_gpupool.agent.child_socket._MOST_STRANGERS_A_USER", 3)
    crowd = [await connect() for _ in range(4)]
    assert await crowd[-1].is_turned_away()
    crowd[0].say(WORKER)
    assert await crowd[0].hear() == Orders()


async def test_silent_stranger_is_turned_away(agent, connect, monkeypatch):
    """Who does not say hello in time has to go."""
    monkeypatch.setattr("jupyter_gpupool.agent.child_socket._SAY_HELLO_WITHIN_S", 0.05)
    child = await connect()
    assert await child.is_turned_away()


async def test_child_that_does_not_read_gets_only_its_last_orders(agent, connect):
    """A stopped child neither blocks the agent nor makes it remember every order."""
    child = await connect()
    child.say(SCHEDULER)
    await child.hear()
    child.reader._transport.pause_reading()
    for count in range(20_000):
        agent.socket.order(Role.SCHEDULER, "claim", "", Orders(keep_workers=count))
    child.reader._transport.resume_reading()
    heard = [await child.hear()]
    while heard[-1] != Orders(keep_workers=19_999):
        heard.append(await child.hear())
    assert len(heard) < 19_999


async def test_many_workers_fit_into_a_schedulers_state(agent, connect):
    """A line of an admitted scheduler may be long: it names every worker."""
    state = SchedulerState(
        address="tls://h:1",
        dashboard_port=1,
        workers=tuple(f"lease-{number:032}" for number in range(5000)),
    )
    child = await connect()
    child.say(SCHEDULER, state)
    assert await agent.next("heard") == state
    assert len(state.encode()) > child_connection._STRANGERS_LINE_BYTES


async def test_socket_can_be_reached_by_all_users_of_a_root_agent(agent, tmp_path):
    """Root's children are other users; any other agent's are its own."""
    mode = stat.S_IMODE((tmp_path / "agent.sock").stat().st_mode)
    assert mode == (0o666 if os.geteuid() == 0 else 0o600)


async def test_long_path_works(tmp_path):
    """A state folder far down is no reason to fail, though a socket's name is short."""
    folder = tmp_path / ("x" * 60) / ("y" * 60)
    folder.mkdir(parents=True)
    agent = Agent(folder / "agent.sock")
    await agent.socket.start()
    assert (folder / "agent.sock").is_socket()
    await agent.socket.close()


async def test_folder_that_is_missing_is_said_in_a_sentence(tmp_path):
    """An agent that cannot listen says where and why."""
    agent = Agent(tmp_path / "nowhere" / "agent.sock")
    with pytest.raises(Unavailable, match="cannot listen on"):
        await agent.socket.start()


@pytest.mark.parametrize("text", ["\ud800", "a\0b"], ids=["half a surrogate", "a zero"])
async def test_text_that_no_report_can_hold_is_refused(agent, connect, text):
    """One child's word must not keep its agent from speaking to the manager."""
    child = await connect()
    child.say(WORKER, WorkerState(registered=False, closing=text))
    assert await child.ends()
    assert not agent.all("heard")


async def test_port_that_is_none_is_refused(agent, connect):
    """A number too large for a port is no state of a scheduler."""
    child = await connect()
    child.say(SCHEDULER, SchedulerState(address="", dashboard_port=65536, workers=()))
    assert await child.ends()
    assert not agent.all("heard")


async def test_what_goes_on_in_a_scheduler_is_passed_on(agent, connect):
    """It is no state of the scheduler: nothing has to be kept of it."""
    child = await connect()
    child.say(SCHEDULER, Lively(activity=BUSY))
    assert await agent.next("lively") == BUSY
    assert not agent.all("heard")


async def test_where_the_results_are_arrives_whole(agent, connect):
    """Phases, counts of many bytes, and each result that cannot be kept."""
    state = dataclasses.replace(LISTENS, keeping=REFUSED)
    child = await connect()
    child.say(SCHEDULER, state)
    assert await agent.next("heard") == state


@pytest.mark.parametrize(
    "line",
    [
        Lively(activity=dataclasses.replace(BUSY, processing=-1)),
        Lively(activity=dataclasses.replace(BUSY, quiet_s=float("nan"))),
        Lively(activity=dataclasses.replace(BUSY, clients="many")),
        dataclasses.replace(LISTENS, keeping=dataclasses.replace(REFUSED, held="all")),
        dataclasses.replace(LISTENS, keeping=dataclasses.replace(REFUSED, phase="asleep")),
        dataclasses.replace(LISTENS, keeping=dataclasses.replace(REFUSED, unkept=("x",))),
        dataclasses.replace(LISTENS, keeping=None),
    ],
    ids=["less than none", "no number", "text", "text within", "phase", "no result", "nothing"],
)
async def test_nonsense_within_a_line_is_refused(agent, connect, line):
    """A user's code runs in a scheduler: what it says is checked to the last field."""
    child = await connect()
    child.say(SCHEDULER, line)
    assert await child.ends()
    assert not agent.all("heard")
    assert not agent.all("lively")


async def test_chatty_child_is_heard_a_part_at_a_time(agent, connect):
    """A child that says a thousand things at once has the agent for some, then others' turn is."""
    child = await connect()
    child.say(WORKER)
    await child.hear()
    states = [WorkerState(registered=bool(i % 2)) for i in range(300)]
    child.say(*states)
    await agent.next("heard")
    assert len(agent.all("heard")) < 100
    await agent.until(lambda: len(agent.all("heard")) == 300)


async def test_turned_away_strangers_do_not_fill_the_log(agent, connect, caplog):
    """Each stranger is turned away; only some are written about."""
    agent.is_admitting = False
    for _ in range(15):
        child = await connect()
        child.say(WORKER)
        assert await child.is_turned_away()
    assert len(caplog.messages) == 10


async def test_no_descriptor_left_is_waited_out(agent, connect):
    """A connection that cannot be taken is taken later, without being tried all the time."""
    listener = Full(agent.socket._listener)
    agent.socket._listener = listener
    child = await connect()
    child.say(WORKER)
    await child.hear()
    assert listener.tries == 2


class Full:
    """A listener in a process that has no descriptor left for the first that comes."""

    def __init__(self, listener) -> None:
        self.tries = 0
        self._listener = listener

    def accept(self):
        self.tries += 1
        if self.tries == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listener.accept()

    def __getattr__(self, name):
        return getattr(self._listener, name)
