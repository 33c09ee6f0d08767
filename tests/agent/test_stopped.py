"""Processes that somebody has stopped: started anew while they start, told of once they run."""

import os
import signal

import pytest
from other_python import make_environment, packages_of

from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.procfs import ProcessId
from jupyter_gpupool.agent.stopped import LOOKS, Stopped, StoppedWatch, sentence_on
from jupyter_gpupool.protocol.link import WantedWorker

WARM_WITHIN_S = 60.0
STOPS_BEFORE_THE_WORD = """
import os, signal, socket

def stop_before(say, is_word):
    def stopping(*what):
        if is_word(what) and os.path.exists({path!r}):
            os.unlink({path!r})
            os.kill(os.getpid(), signal.SIGSTOP)
        return say(*what)
    return stopping

os.write = stop_before(os.write, lambda what: what[1] == b"\\n")
socket.send_fds = stop_before(socket.send_fds, lambda what: True)
"""


@pytest.fixture
async def joined(agent, manager_end):
    """The first report of an agent that looks often."""
    agent.start("--AgentApp.sample_interval_s=0.1")
    return await manager_end.until(lambda report: len(report.devices) == 2)


@pytest.fixture
def states() -> dict[int, str]:
    """The state of each process, by pid."""
    return {}


@pytest.fixture
def watch(row, states) -> StoppedWatch:
    """A watch of those."""
    return StoppedWatch(lambda pid: row(pid, state=states[pid], started=7))


def test_a_moments_stop_is_overlooked(watch, states, worker_seen) -> None:
    """It counts anew after each look at which the process ran."""
    for state in ("T" * (LOOKS - 1) + "S") * 2:
        states[101] = state
        assert watch.look([worker_seen()]) == ()


@pytest.mark.parametrize("state", ["T", "t"], ids=["by a signal", "by a debugger"])
@pytest.mark.parametrize("registered", [False, True])
def test_stopped_process_is_found(watch, states, worker_seen, state, registered) -> None:
    """With whether anybody waits for its start."""
    states[101], seen = state, worker_seen(registered=registered)
    found = [watch.look([seen]) for _ in range(LOOKS)][-1]
    assert found == (Stopped(key=seen.key, process=seen.process, starts=not registered),)


def test_pid_that_is_anothers_by_now_is_not_judged(watch, states, worker_seen) -> None:
    """Whoever has it, it is no process of ours."""
    states[101], seen = "T", worker_seen(process=ProcessId(101, 8))
    assert [watch.look([seen]) for _ in range(LOOKS)] == [()] * LOOKS


def test_sentence_names_a_few() -> None:
    """And none that is ended, for then its claim says so."""
    several = [
        Stopped(key=ProcessKey("c1", 1, "l1"), process=ProcessId(pid, 7), starts=pid == 1)
        for pid in range(1, 7)
    ]
    assert sentence_on(several).endswith(": worker 2, worker 3, worker 4 and 2 more.")
    assert sentence_on(several[:1]) == ""


async def test_worker_stopped_while_it_starts_is_started_again(
    agent, manager_end, two_workers, real_claim
) -> None:
    """Its claim waits for it; why it was ended is told."""
    await manager_end.want(real_claim("c1", two_workers[0], scheduler=None))
    before = await manager_end.until(lambda report: report.workers and report.workers[0].pid)
    os.kill(before.workers[0].pid, signal.SIGSTOP)
    after = await manager_end.until(lambda report: report.workers[0].restarts == 1)
    assert "it was stopped, by SIGSTOP" in after.workers[0].problem


@pytest.fixture
def zygote_that_stops(tmp_path):
    """Its interpreter, and a file: while that is there, it stops once it has told of a child."""
    python, stops_next = make_environment(tmp_path / "stops"), tmp_path / "next"
    code = STOPS_BEFORE_THE_WORD.format(path=str(stops_next))
    (packages_of(python) / "sitecustomize.py").write_text(code)
    return python, stops_next


async def test_child_whose_zygote_is_stopped_before_its_word_is_started_again(
    agent, manager_end, real_claim, zygote_that_stops
) -> None:
    """The agent knows of the child, which waits to be told that it does."""
    python, stops_next = zygote_that_stops
    environments = f"--AgentApp.environments=own={python.parent.parent}"
    agent.start(environments, "--AgentApp.sample_interval_s=0.1")
    first = await manager_end.until(lambda report: len(report.devices) == 2)
    stops_next.touch()
    worker = WantedWorker(lease_id="l1", device=first.devices[0].device.uuid)
    await manager_end.want(real_claim("c1", worker, scheduler=None, environment="own"))
    after = await manager_end.until(
        lambda report: report.workers and report.workers[0].restarts == 1, WARM_WITHIN_S
    )
    assert not stops_next.exists(), after.workers


async def test_stopped_scheduler_is_told_and_left_alone(
    agent, manager_end, two_workers, real_claim, see
) -> None:
    """Until it goes on."""
    await manager_end.want(real_claim("c1", two_workers[0]))
    pid = see.pids(await manager_end.until(see.all_run(1, 1)))["scheduler"]
    os.kill(pid, signal.SIGSTOP)
    told = await manager_end.until(lambda report: f"scheduler {pid}." in report.problem)
    assert f"process {pid}, was stopped by SIGSTOP" in told.schedulers[0].problem
    os.kill(pid, signal.SIGCONT)
    report = await manager_end.until(lambda report: not report.problem)
    assert (see.pids(report)["scheduler"], report.schedulers[0].problem) == (pid, "")
