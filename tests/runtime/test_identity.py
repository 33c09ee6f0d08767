"""A child becomes its claim's user for good."""

import os
import pwd
from pathlib import Path

import pytest
from distributed import Client

from jupyter_gpupool.agent.zygotes import Identity
from jupyter_gpupool.runtime.identity import gain_nothing

NOBODY = 65534
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def test_child_is_its_user_with_all_its_groups(host, claim):
    """User, group and further groups are the claim's, not root's."""
    await host.up(claim, "lease-a", identity=Identity(NOBODY, NOBODY, (NOBODY, 12345)))
    status = _status(host.pid_of(claim, "lease-a"))
    assert status["Uid"].split() == [str(NOBODY)] * 4
    assert status["Gid"].split() == [str(NOBODY)] * 4
    assert set(status["Groups"].split()) == {str(NOBODY), "12345"}


async def test_child_can_never_gain_a_right_again(host, claim):
    """No capability is left, and set-uid programs give none."""
    await host.up(claim, "lease-a", identity=Identity(NOBODY, NOBODY))
    status = _status(host.pid_of(claim, "lease-a"))
    assert status["NoNewPrivs"].strip() == "1"
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0


async def test_users_worker_computes_as_that_user(host, claim):
    """Dask's work runs as the user, with the user's name and home."""

    def who():
        return os.getuid(), os.environ["USER"]

    state = await host.up(claim, "lease-a", identity=Identity(NOBODY, NOBODY))
    async with Client(state.address, security=claim.security(), asynchronous=True) as client:
        assert await client.submit(who) == (NOBODY, "nobody")


async def test_root_zygote_stays_single_threaded_and_root(host, claim):
    """Children change; the zygote does not."""
    await host.up(claim, "lease-a", identity=Identity(NOBODY, NOBODY))
    (zygote,) = host.zygotes.pids
    assert (_status(zygote)["Threads"].strip(), _status(zygote)["Uid"].split()[0]) == ("1", "0")


async def test_roots_home_is_no_childs_and_no_zygotes(host, claim):
    """What root keeps in its home, passwords in Dask's configuration too, reaches nobody."""
    await host.up(claim, "lease-a", identity=Identity(NOBODY, NOBODY))
    (zygote,) = host.zygotes.pids
    assert b"HOME=/nonexistent\0" in _environ(zygote)


async def test_roots_own_worker_has_its_own_home(host, claim):
    """The zygote of many users has no home; each of its children has its user's."""

    def home():
        return os.environ["HOME"]

    state = await host.up(claim, "lease-a")
    async with Client(state.address, security=claim.security(), asynchronous=True) as client:
        assert await client.submit(home) == pwd.getpwuid(0).pw_dir


def _privileges_of_a_child_that_gains_nothing() -> str:
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setresuid(NOBODY, NOBODY, NOBODY)
        gain_nothing()
        os.write(writing, _status(os.getpid())["NoNewPrivs"].strip().encode())
        os._exit(0)
    os.wait()
    said = os.read(reading, 10).decode()
    os.close(reading)
    os.close(writing)
    return said


async def test_zygote_that_is_the_user_already_gives_no_right_either():
    """Where nobody is changed, set-uid programs give nothing either: all that runs can be ended."""
    assert _privileges_of_a_child_that_gains_nothing() == "1"
