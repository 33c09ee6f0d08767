"""The agent's socket against anybody else on the host, and against nonsense."""

import asyncio
import dataclasses
import errno
import os
import socket
import stat
from pathlib import Path

import pytest
from agent_harness.child_ends import (
    BUSY,
    LISTENS,
    REFUSED,
    SCHEDULER,
    WORKER,
    Child,
    SocketOwner,
)

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.launch import (
    Lively,
    Orders,
    SchedulerState,
    WorkerState,
)


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


async def test_socket_can_be_reached_by_all_users_of_a_root_agent(agent, tmp_path):
    """Root's children are other users; any other agent's are its own."""
    mode = stat.S_IMODE((tmp_path / "agent.sock").stat().st_mode)
    assert mode == (0o666 if os.geteuid() == 0 else 0o600)


async def test_long_path_works(tmp_path):
    """A state folder far down is no reason to fail, though a socket's name is short."""
    folder = tmp_path / ("x" * 60) / ("y" * 60)
    folder.mkdir(parents=True)
    agent = SocketOwner(folder / "agent.sock")
    await agent.socket.start()
    assert (folder / "agent.sock").is_socket()
    await agent.socket.close()


async def test_folder_that_is_missing_is_said_in_a_sentence(tmp_path):
    """An agent that cannot listen says where and why."""
    agent = SocketOwner(tmp_path / "nowhere" / "agent.sock")
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
