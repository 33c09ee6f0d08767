"""What a zygote is believed: one that runs as a user may be that user's own program."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from jupyter_gpupool.agent.hearsay import Nonsense, hear
from jupyter_gpupool.agent.zygotes import NOBODY, Zygotes
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.launch import Exited, Forked, Launch, Role, Tls, Warm

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' processes")
LIES = {
    "answers with another's process": "head -c 1 <&$link >/dev/null; say 1",
    "answers what nobody asked": "say 7; head -c 1 <&$link >/dev/null",
    "talks nonsense": "yes >&$link",
}


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[" * 100_000,
        b'{"is": "Forked", "ticket": 1, "pid": -1}',
        b'{"is": "Forked", "ticket": 1, "pid": 1}',
        b'{"is": "Forked", "ticket": {}, "pid": 100}',
        b'{"is": "Exited", "pid": "all", "status": 0}',
        b'{"is": "Exited", "pid": 100, "status": null}',
    ],
)
def test_line_that_makes_no_sense_is_not_believed(line) -> None:
    """Above all no process id that stands for many processes."""
    with pytest.raises(Nonsense):
        hear(line, user=None)


def test_process_of_another_user_is_nobodys_child() -> None:
    """A root agent would end it in the end."""
    own = Forked(ticket=1, pid=os.getpid())
    assert hear(own.encode(), user=os.getuid()) == own
    with pytest.raises(Nonsense, match="somebody else's"):
        hear(own.encode(), user=os.getuid() + 1)


def test_child_that_has_ended_already_is_believed() -> None:
    """It may be quicker than its zygote's word."""
    process = subprocess.Popen(["true"])
    process.wait()
    forked = Forked(ticket=1, pid=process.pid)
    assert hear(forked.encode(), user=os.getuid() + 1) == forked


def test_ends_are_told_as_they_are() -> None:
    """Whose they are is known to who hears them."""
    assert hear(Exited(pid=100, status=-9).encode(), user=None) == Exited(pid=100, status=-9)


def test_what_a_zygote_says_of_itself_stays_small() -> None:
    """It goes into messages and reports."""
    told = Warm(problem="x" * 10**5, versions={str(n): "1" for n in range(10**4)})
    warm = hear(told.encode(), user=None)
    assert isinstance(warm, Warm)
    assert (len(warm.problem), len(warm.versions)) == (2000, 100)


@pytest.fixture
def victim():
    """A process of root's."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


@root_only
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_users_zygote_that_lies_is_ended_and_harms_nobody(victim, lie) -> None:
    """Neither now nor when its claim ends."""
    folder = Path(tempfile.mkdtemp(prefix="gpupool-"))
    zygotes = _lying(folder, lie, victim.pid)
    try:
        with pytest.raises(Unavailable):
            await _fork(zygotes, folder)
        assert zygotes.pids == ()
        assert victim.poll() is None
    finally:
        await zygotes.close()
        shutil.rmtree(folder)


def _lying(folder: Path, lie: str, victim: int) -> Zygotes:
    folder.chmod(0o755)
    python = folder / "python"
    say = f"""say() {{ printf '{{"is": "Forked", "ticket": '$1', "pid": {victim}}}' >&$link; }}"""
    warm = """printf '{"is": "Warm"}' >&$link"""
    python.write_text(f"#!/bin/bash\nlink=${{@: -1}}\n{say}\n{warm}\n{lie}\n")
    python.chmod(0o755)
    return Zygotes(
        interpreter=python,
        log_folder=folder,
        exited=lambda *_: None,
        may_share=False,
        is_kept=False,
    )


async def _fork(zygotes: Zygotes, folder: Path) -> None:
    launch = Launch(
        role=Role.WORKER,
        claim_id="claim",
        lease_id="lease",
        name="lease",
        listen="127.0.0.1",
        protocol="tls",
        folder=str(folder),
        agent_socket=str(folder / "agent.sock"),
        tls=Tls(ca="", certificate="", key=""),
    )
    log = os.open(os.devnull, os.O_WRONLY)
    try:
        await zygotes.fork(launch, identity=NOBODY, log_fd=log, lock_fds=())
    finally:
        os.close(log)
