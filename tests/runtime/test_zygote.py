"""The zygote's own death and failures."""

import errno
import os
import signal
import socket

import pytest
from distributed import Client

from jupyter_gpupool.protocol.launch import Fork, decode
from jupyter_gpupool.runtime.spares import Spares
from jupyter_gpupool.runtime.zygote import Zygote

REQUEST = Fork(ticket=7, uid=None, gid=None, groups=(), descriptors=("launch",))
LOGGED = Fork(ticket=8, uid=None, gid=None, groups=(), descriptors=("log",))


@pytest.mark.asyncio(loop_scope="module")
async def test_children_outlive_a_killed_zygote(host, claim):
    """A killed zygote is no event in a claim's life, and new workers still start."""
    state = await host.up(claim, "lease-a")
    os.kill(host.zygotes.pids[0], signal.SIGKILL)
    await host.fork_worker(claim, "lease-b", address=state.address)
    await host.until(lambda: host.is_complete(claim, ["lease-a", "lease-b"]))
    async with Client(state.address, security=claim.security(), asynchronous=True) as client:
        assert await client.submit(sum, [1, 2], workers=["lease-a"]) == 3


@pytest.fixture
def zygote():
    """A zygote within this process, and the agent's end of its link."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made = object.__new__(Zygote)
    made._link, made._spares = theirs, Spares(0, os.getpid, os.close)
    with ours, theirs:
        yield made, ours


def test_fork_that_fails_is_answered_with_the_reason(monkeypatch, zygote):
    """A host out of memory or processes is said, and the zygote goes on."""

    def fail():
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("os.fork", fail)
    zygote[0]._serve(REQUEST, REQUEST.encode(), [3])
    answer = decode(zygote[1].recv(4096))
    assert (answer.ticket, answer.pid) == (7, None)
    assert answer.problem == "fork failed: Cannot allocate memory"


def test_fork_without_its_descriptors_is_refused(zygote):
    """Descriptors that were lost on the way are no reason to fork a child that cannot live."""
    zygote[0]._serve(REQUEST, REQUEST.encode(), [])
    answer = decode(zygote[1].recv(4096))
    assert answer.pid is None
    assert "descriptors" in answer.problem


def test_child_whose_pid_is_told_to_nobody_ends_before_it_begins(tmp_path, zygote):
    """A zygote that dies between the fork and its answer leaves nothing beside a second try."""
    zygote[1].close()
    log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    with pytest.raises(BrokenPipeError):
        zygote[0]._serve(LOGGED, LOGGED.encode(), [log])
    _, status = os.waitpid(-1, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    # Not even that its launch is missing: it read none.
    assert os.pread(log, 10, 0) == b""
    os.close(log)
