"""Spares: forked ahead, known to nobody until they are taken."""

import asyncio
import os
import signal
import socket
import subprocess

import psutil
import pytest
from distributed import Client

from jupyter_gpupool.runtime.spares import READY, Spares

on_one_loop = pytest.mark.asyncio(loop_scope="module")


async def until(look):
    """What `look` finds, once it finds something: it is processes that tell nobody."""
    async with asyncio.timeout(15):
        while True:
            if found := look():
                return found
            await asyncio.sleep(0.02)


async def spares_of(host, count=2):
    """The spares that the host's zygote keeps."""
    await host.zygotes.warm(None)

    def enough():
        children = psutil.Process(host.zygotes.pids[0]).children()
        found = [child for child in children if _name_of(child) == "gpupool-spare"]
        return found if len(found) >= count else None

    return await until(enough)


async def stop(spares):
    """Stop them: SIGSTOP is a request, and takes hold a moment later."""
    for spare in spares:
        spare.suspend()
    await until(lambda: {spare.status() for spare in spares} == {psutil.STATUS_STOPPED})


def _name_of(process):
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


@on_one_loop
async def test_claim_takes_the_spares_that_are_ready(host, claim):
    """What was forked ahead becomes the claim's scheduler and worker."""
    spares = await spares_of(host)
    state = await host.up(claim, "lease-a")
    async with Client(state.address, security=claim.security(), asynchronous=True) as client:
        assert await client.submit(os.getpid) in {spare.pid for spare in spares}


@on_one_loop
async def test_spare_that_dies_is_nobodys_end(host, claim):
    """A spare's death is told to nobody, and claims start as before."""
    victim = (await spares_of(host))[0]
    victim.kill()
    victim.wait(5)
    await host.up(claim, "lease-a")
    assert victim.pid not in host.ends


@on_one_loop
async def test_spares_end_with_their_zygote(host):
    """A zygote that was killed leaves no spare behind."""
    left = await spares_of(host)
    os.kill(host.zygotes.pids[0], signal.SIGKILL)
    gone, alive = psutil.wait_procs(left, timeout=10)
    assert (len(gone), alive) == (len(left), [])


@on_one_loop
async def test_stopped_spares_hold_no_claim_up(host, claim):
    """A spare that somebody has stopped is not taken; its claim is forked for as ever."""
    spares = await spares_of(host)
    await stop(spares)
    state = await host.up(claim, "lease-a")
    async with Client(state.address, security=claim.security(), asynchronous=True) as client:
        assert await client.submit(os.getpid) not in {spare.pid for spare in spares}


@on_one_loop
async def test_spares_listen_to_nobody(host):
    """A rehearsal leaves no socket that others could reach."""
    spares = await spares_of(host)
    assert [spare.net_connections("inet") for spare in spares] == [[], []]


class Forks:
    """Spares' forks, without a process but for the one it is given."""

    def __init__(self):
        self.process = None
        self.links = []
        self.spares = Spares(1, self, self.live)

    def __call__(self, life):
        life()
        # Some process that runs, for its state is looked at.
        return os.getpid() if self.process is None else self.process.pid

    def live(self, link):
        self.links.append(link.dup())
        return 0

    def close(self):
        """Leave nothing behind."""
        for link in (*self.links, *(spare.link for spare in self.spares._waiting.values())):
            link.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def forks():
    made = Forks()
    yield made
    made.close()


def test_spare_is_taken_only_once_it_is_ready(forks):
    """A spare that still rehearses would make its claim wait longer than a fork."""
    forks.spares.make_one()
    assert forks.spares.take() is None
    forks.links[0].send(READY)
    taken = forks.spares.take()
    taken.hand_over(b"request", [])
    assert taken.pid == os.getpid()


def test_stopped_spare_is_not_taken_while_it_dies(forks):
    """It is ended, and runs once more on its way there: a request would end with it."""
    forks.process = subprocess.Popen(["sleep", "60"])
    forks.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, forks.process.pid, os.WSTOPPED)
    forks.spares.make_one()
    forks.links[0].send(READY)
    assert [forks.spares.take() for _ in range(50)] == [None] * 50
    assert forks.process.wait(5) == -signal.SIGKILL


def test_spares_that_keep_dying_are_given_up(forks):
    """Where no spare can live the zygote stops making them."""
    for _ in range(3):
        forks.spares._due_s = 0.0
        forks.spares.make_one()
        assert forks.spares.is_gone(os.getpid())
    assert forks.spares.due_in_s() is None


def test_deaths_of_spares_that_had_rehearsed_do_not_count(forks):
    """Whatever kills a spare now and then must not switch spares off for good."""
    for _ in range(4):
        forks.spares._due_s = 0.0
        forks.spares.make_one()
        forks.links[-1].send(READY)
        forks.spares.is_gone(os.getpid())
    assert forks.spares.due_in_s() is not None


def test_taken_spare_gets_request_and_descriptors(forks):
    """The request is passed on as it came, with what belongs to it."""
    forks.spares.make_one()
    forks.links[0].send(READY)
    read, write = os.pipe()
    forks.spares.take().hand_over(b"request", [read])
    line, descriptors, _, _ = socket.recv_fds(forks.links[0], 100, 4)
    assert (line, len(descriptors)) == (b"request", 1)
    for descriptor in (read, write, *descriptors):
        os.close(descriptor)
