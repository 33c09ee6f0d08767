"""Zygotes as the agent uses them: through deaths, failures and users."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import pytest_asyncio

from jupyter_gpupool.agent.zygote_logs import zygote_log
from jupyter_gpupool.agent.zygotes import Identity, Zygotes
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.launch import Launch, Role, Tls

pytestmark = pytest.mark.asyncio(loop_scope="module")
DEADLINE_S = 20.0
TELLS_WHO = "#!/bin/sh\necho $(id -u) $(id -g)\n"
WARM_AT_ONCE = """#!/bin/bash
printf '{"is": "Warm"}\\n' >&${@: -1}
exec cat <&${@: -1}
"""


class Ends:
    """What zygotes told of their children's ends."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self._changed = asyncio.Event()

    def note(self, pid: int, status: int) -> None:
        self.seen[pid] = status
        self._changed.set()

    async def of(self, pid: int) -> int:
        await self.until(lambda: pid in self.seen)
        return self.seen[pid]

    async def until(self, holds) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture(scope="module")
def ends():
    return Ends()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def zygotes(ends, tmp_path_factory):
    zygotes = Zygotes(
        interpreter=Path(sys.executable),
        log_folder=tmp_path_factory.mktemp("logs"),
        exited=ends.note,
    )
    yield zygotes
    await zygotes.close()


def _launch(folder: Path, **changes) -> Launch:
    """A worker that cannot start: it ends by itself with exit code 1."""
    return Launch(
        role=Role.WORKER,
        claim_id="claim",
        lease_id="lease",
        name="lease",
        listen="127.0.0.1",
        protocol="nonsense",
        folder=str(folder),
        agent_socket=str(folder / "agent.sock"),
        tls=Tls(ca="", certificate="", key=""),
        **changes,
    )


async def _fork(zygotes, folder, identity=None):
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        return await zygotes.fork(_launch(folder), identity=identity, log_fd=log, lock_fds=())
    finally:
        os.close(log)


async def test_warm_zygote_tells_its_versions(zygotes):
    """The agent learns what its environment has, and that forking there is safe."""
    warm = await zygotes.warm(None)
    assert warm.problem == ""
    assert {"python", "distributed", "dask-cuda"} <= set(warm.versions)


@pytest.mark.parametrize("turns", range(8))
async def test_zygote_that_is_being_started_goes_with_the_others(tmp_path, turns):
    """Whenever they are closed, no process of theirs is there afterwards, nor comes later."""
    zygotes = Zygotes(interpreter=Path(sys.executable), log_folder=tmp_path, exited=Ends().note)
    warming = asyncio.create_task(zygotes.warm(None))
    for _ in range(turns):
        await asyncio.sleep(0)
    await zygotes.close()
    await asyncio.gather(warming, return_exceptions=True)
    assert [thread for thread in threading.enumerate() if thread.name == "gpupool may hang"] == []
    assert _of_session(zygote_log(tmp_path, "default", os.geteuid())) == set()


async def test_end_of_a_child_is_told_after_its_fork(zygotes, ends, tmp_path):
    """Even a child that ends at once is first returned, then told of."""
    pid = await _fork(zygotes, tmp_path)
    assert pid not in ends.seen
    assert await ends.of(pid) == 1


async def test_many_children_at_once_are_all_told_of(zygotes, ends, tmp_path):
    """No end is lost when many come together."""
    pids = await asyncio.gather(*(_fork(zygotes, tmp_path) for _ in range(30)))
    assert len(set(pids)) == 30
    assert [await ends.of(pid) for pid in pids] == [1] * 30


async def test_killed_child_is_told_with_its_signal(zygotes, ends, tmp_path):
    """A status of -N is signal N."""
    pid = await _fork(zygotes, tmp_path)
    os.kill(pid, signal.SIGKILL)
    assert await ends.of(pid) in (-signal.SIGKILL, 1)


async def test_killed_zygote_is_replaced_for_the_next_fork(zygotes, ends, tmp_path):
    """A zygote killed with -9 costs nobody more than the time to warm up."""
    await zygotes.warm(None)
    (before,) = zygotes.pids
    os.kill(before, signal.SIGKILL)
    await _gone(before)
    assert await ends.of(await _fork(zygotes, tmp_path)) == 1
    assert before not in zygotes.pids


async def test_stopped_zygote_is_given_up_and_replaced(zygotes, ends, tmp_path, monkeypatch):
    """One that hangs is killed; the caller hears it instead of waiting for ever."""
    monkeypatch.setattr("jupyter_gpupool.agent.zygotes._FORK_WITHIN_S", 0.5)
    await zygotes.warm(None)
    os.kill(zygotes.pids[0], signal.SIGSTOP)
    with pytest.raises(Unavailable, match="did not answer"):
        await _fork(zygotes, tmp_path)
    assert await ends.of(await _fork(zygotes, tmp_path)) == 1


async def test_zygote_stopped_before_it_is_warm_is_given_up(ends, tmp_path):
    """Whoever waits for it does so for a second or two, not for as long as a start may take."""
    stops = tmp_path / "python"
    stops.write_text("#!/bin/sh\nkill -STOP $$\n")
    stops.chmod(0o755)
    zygotes = Zygotes(interpreter=stops, log_folder=tmp_path, exited=ends.note, is_kept=False)
    with pytest.raises(Unavailable, match="did not get warm"):
        async with asyncio.timeout(DEADLINE_S):
            await zygotes.warm(None)
    await zygotes.close()


async def test_caller_who_gives_up_leaves_no_process(zygotes, ends, tmp_path):
    """A fork whose caller was cancelled is nobody's: it is killed."""
    await zygotes.warm(None)
    ends.seen.clear()
    forking = asyncio.create_task(_fork(zygotes, tmp_path))
    await asyncio.sleep(0)
    forking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forking
    other = await _fork(zygotes, tmp_path)
    await ends.until(lambda: len(ends.seen) == 2)
    assert ends.seen.pop(other) == 1
    assert _children(zygotes.pids[0]) == []


async def _gone(pid: int) -> None:
    """Wait for a process to end and for what its end sets off here."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(DEADLINE_S):
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


async def test_environment_without_our_package_is_said_with_its_last_lines(ends, tmp_path):
    """The message tells what the zygote wrote before it died."""
    zygotes = Zygotes(interpreter=Path("/usr/bin/python3"), log_folder=tmp_path, exited=ends.note)
    if not Path("/usr/bin/python3").exists():  # noqa: ASYNC240 - a test may look at a path
        pytest.skip("there is no second Python")
    with pytest.raises(Unavailable, match=r"jupyter_gpupool|unknown option|Unknown option"):
        await zygotes.warm(None)
    await zygotes.close()


async def test_missing_interpreter_is_said_in_a_sentence(ends, tmp_path):
    """A path that leads nowhere is no traceback."""
    zygotes = Zygotes(interpreter=Path("/no/such/python"), log_folder=tmp_path, exited=ends.note)
    with pytest.raises(Unavailable, match=r"cannot be started.*/no/such/python"):
        await zygotes.warm(None)
    await zygotes.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' processes")
async def test_roots_token_never_reaches_a_zygote(zygotes, monkeypatch, ends, tmp_path):
    """A zygote's environment is seen by every child: root's secrets are left out."""
    monkeypatch.setenv("GPUPOOL_TOKEN", "tell-nobody")
    monkeypatch.setenv("DATABASE_PASSWORD", "tell-nobody")
    other = Zygotes(interpreter=Path(sys.executable), log_folder=tmp_path, exited=ends.note)
    await other.warm(None)
    environ = _environ(other.pids[0])
    await other.close()
    assert b"tell-nobody" not in environ


def _environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def test_user_that_may_not_be_become_is_refused(zygotes, monkeypatch, tmp_path):
    """An agent that is not root forks for its own user alone, and says so."""
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    with pytest.raises(Unavailable, match="runs as user 4711"):
        await _fork(zygotes, tmp_path, Identity(4712, 4712))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' processes")
async def test_users_own_environment_gets_a_zygote_of_that_user(ends):
    """Root never loads what a user could have written: such a zygote runs as the user."""
    folder = Path(tempfile.mkdtemp(prefix="gpupool-"))
    python = _a_users_python(folder)
    zygotes = Zygotes(interpreter=python, log_folder=folder, exited=ends.note)
    with pytest.raises(Unavailable, match=r"Its last lines: 65534 65534"):
        await zygotes.warm(Identity(65534, 65534))
    await zygotes.close()
    shutil.rmtree(folder)


def _a_users_python(folder: Path, script: str = TELLS_WHO) -> Path:
    """An interpreter that tells whose process it is and ends."""
    folder.chmod(0o755)
    python = folder / "python"
    python.write_text(script)
    python.chmod(0o755)
    os.chown(python, 65534, 65534)
    return python


async def test_last_lines_are_those_of_this_zygote_alone(ends, tmp_path):
    """What earlier ones wrote is no reason of this one's; a reason is one line."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "first $$"\necho second\n')
    python.chmod(0o755)
    zygotes = Zygotes(interpreter=python, log_folder=tmp_path, exited=ends.note)
    for _ in range(2):
        with pytest.raises(Unavailable) as told:
            await zygotes.warm(None)
    await zygotes.close()
    assert str(told.value).count("first") == 1
    assert "| second" in str(told.value)


async def test_stopped_zygote_does_not_hold_up_the_end(ends, tmp_path):
    """Closing kills: a zygote that hangs is gone and reaped afterwards."""
    zygotes = Zygotes(interpreter=Path(sys.executable), log_folder=tmp_path, exited=ends.note)
    await zygotes.warm(None)
    (pid,) = zygotes.pids
    os.kill(pid, signal.SIGSTOP)
    await zygotes.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_answer_that_comes_with_the_timeout_is_taken(zygotes, ends, tmp_path, monkeypatch):
    """A child that a killed zygote has told of lives, and is the caller's."""
    monkeypatch.setattr("jupyter_gpupool.agent.zygotes._FORK_WITHIN_S", 0.0)
    await zygotes.warm(None)
    outcome = await asyncio.gather(_fork(zygotes, tmp_path), return_exceptions=True)
    told = [pid for pid in outcome if isinstance(pid, int)]
    # Told of or not: nobody is left whom the caller does not know.
    for pid in _of_session(tmp_path / "log") - set(told):
        with contextlib.suppress(ProcessLookupError):
            await _gone(pid)
    assert _of_session(tmp_path / "log") <= set(told)


def _of_session(log: Path) -> set[int]:
    """Processes that write to that log."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "fd" / "1").readlink() == log:
                found.add(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' processes")
async def test_users_own_zygote_goes_when_its_user_has_nothing_left(ends, monkeypatch):
    """It is dropped some time after its last use, and not started again by itself."""
    monkeypatch.setattr("jupyter_gpupool.agent.zygotes._IDLE_KEPT_S", 0.2)
    folder = Path(tempfile.mkdtemp(prefix="gpupool-"))
    python = _a_users_python(folder, WARM_AT_ONCE)
    zygotes = Zygotes(interpreter=python, log_folder=folder, exited=ends.note)
    await zygotes.warm(Identity(65534, 65534))
    (pid,) = zygotes.pids
    await _gone(pid)
    assert zygotes.pids == ()
    await zygotes.close()
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' processes")
async def test_user_with_a_new_group_gets_a_new_zygote(ends):
    """The groups of the first start are not kept for ever."""
    folder = Path(tempfile.mkdtemp(prefix="gpupool-"))
    python = _a_users_python(folder, WARM_AT_ONCE)
    zygotes = Zygotes(interpreter=python, log_folder=folder, exited=ends.note)
    await zygotes.warm(Identity(65534, 65534, (65534,)))
    await zygotes.warm(Identity(65534, 65534, (65534, 12345)))
    assert len(zygotes.pids) == 2
    await zygotes.close()
    shutil.rmtree(folder)
