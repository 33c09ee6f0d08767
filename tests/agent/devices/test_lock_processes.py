"""The lock across processes: who dies, who inherits, who races."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_gpupool.agent.devices.lock import DeviceHeldElsewhere, DeviceLocks
from jupyter_gpupool.pool.ids import DeviceUuid

Pools = Callable[[], DeviceLocks]
GPU = DeviceUuid("GPU-1")
NOBODY = 65534
DEADLINE_S = 30

TAKER = """
import sys
from pathlib import Path
from jupyter_gpupool.agent.devices.lock import DeviceLocks
DeviceLocks(Path(sys.argv[1])).acquire(sys.argv[2])
print("taken", flush=True)
sys.stdin.read()
"""

AGENT = """
import os, signal, sys
from pathlib import Path
from jupyter_gpupool.agent.devices.lock import DeviceLocks
DeviceLocks(Path(sys.argv[1])).acquire(sys.argv[2])
worker = os.fork()
if worker:
    print(worker, flush=True)
signal.pause()
"""

RACER = """
import os, sys
from pathlib import Path
from jupyter_gpupool.agent.devices.lock import DeviceHeldElsewhere, DeviceLocks
if sys.argv[3] != "-":
    os.setuid(int(sys.argv[3]))
print("ready", flush=True)
sys.stdin.readline()
won = 0
locks = DeviceLocks(Path(sys.argv[1]))
for number in range(12):
    try:
        locks.acquire(f"{sys.argv[2]}-{number}")
        won += 1
    except DeviceHeldElsewhere:
        pass
print(won, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a Python program that is ended with the test."""
    running: list[subprocess.Popen[str]] = []

    def start_(program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        return process

    yield start_
    for process in running:
        process.kill()
        process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    assert select.select([process.stdout], [], [], DEADLINE_S)[0], "it said nothing in time"
    return process.stdout.readline().strip()


def _say(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


def test_another_process_is_kept_out_until_it_is_killed(start, pools: Pools, lock_folder: Path):
    """Kill -9 of the holder frees the device at once."""
    here = pools()
    taker = start(TAKER, lock_folder, GPU)
    assert _line(taker) == "taken"
    with pytest.raises(DeviceHeldElsewhere):
        here.acquire(GPU)
    taker.kill()
    taker.wait(DEADLINE_S)
    assert here.acquire(GPU)


def test_a_stopped_holder_still_holds(start, pools: Pools, lock_folder: Path):
    """A process that does not answer has not let go."""
    here = pools()
    taker = start(TAKER, lock_folder, GPU)
    assert _line(taker) == "taken"
    taker.send_signal(signal.SIGSTOP)
    assert here.is_held_elsewhere(GPU)


def test_a_forked_worker_keeps_the_lock_of_its_dead_agent(start, pools: Pools, lock_folder: Path):
    """Agent takes, forks, is killed: the device stays the worker's until it is gone too."""
    here = pools()
    agent = start(AGENT, lock_folder, GPU)
    worker = int(_line(agent))
    agent.kill()
    agent.wait(DEADLINE_S)
    held = here.is_held_elsewhere(GPU)
    os.kill(worker, signal.SIGKILL)
    # The worker had the agent's output open too: it ends when the worker is gone.
    assert _line(agent) == ""
    assert held
    assert here.acquire(GPU)


def test_a_lock_passed_over_a_socket_is_adopted(start, pools: Pools):
    """A worker hands its lock back to the next agent by SCM_RIGHTS."""
    old, new, there = pools(), pools(), pools()
    workers_end, agents_end = socket.socketpair()
    socket.send_fds(workers_end, [b"hello"], [old.acquire(GPU)])
    _, (fd, *_), _, _ = socket.recv_fds(agents_end, 16, 1)
    workers_end.close()
    agents_end.close()
    old.close()
    assert not os.get_inheritable(new.adopt(GPU, fd))
    assert there.is_held_elsewhere(GPU)


@pytest.mark.parametrize(
    "user",
    [
        "-",
        pytest.param(
            NOBODY,
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two users"),
        ),
    ],
)
def test_racing_for_the_first_lock_has_one_winner_each(start, tmp_path: Path, user):
    """Two processes, of two users too, make folder and files at once: each device goes to one."""
    shared = Path("/tmp") / f"gpupool-race-{os.getpid()}-{user}"
    racers = [start(RACER, shared, GPU, uid) for uid in ("-", user)]
    try:
        assert [_line(racer) for racer in racers] == ["ready", "ready"]
        for racer in racers:
            _say(racer)
        assert sum(int(_line(racer)) for racer in racers) == 12
    finally:
        for path in shared.iterdir():
            path.unlink()
        shared.rmdir()
