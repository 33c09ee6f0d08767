"""A real agent with real schedulers and workers, led by the manager's end of its link."""

import os
import signal

import pytest

from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.protocol.link import Desired, ProcessPhase, WantedWorker


async def test_wanted_claim_runs_and_unwanted_one_leaves_nothing(
    agent, manager_end, running, see
) -> None:
    """All of it is gone and its devices are free; zygotes and what they fork ahead stay."""
    await manager_end.want()
    await manager_end.until(see.empty)
    assert agent.beside() == []


async def test_report_shows_the_generation_it_follows(manager_end, running, see) -> None:
    """The manager can tell whether an absent worker was unwanted or is missing."""
    assert running.generation == 1
    await manager_end.want()
    assert (await manager_end.until(see.empty)).generation == 2


async def test_older_generation_changes_nothing(manager_end, running, see) -> None:
    """A late message cannot end what a newer one wants."""
    await manager_end.say(Desired(generation=0))
    await manager_end.want(*manager_end.wanted.values())
    report = await manager_end.until(lambda report: report.generation == 2)
    assert see.pids(report) == see.pids(running)


async def test_repeated_message_starts_nothing_twice(manager_end, running, see) -> None:
    """Wanting the same again leaves all as it is."""
    await manager_end.want(*manager_end.wanted.values())
    report = await manager_end.until(lambda report: report.generation == 2)
    assert see.pids(report) == see.pids(running)


async def test_lost_connection_ends_nothing(manager_end, running, see) -> None:
    """A manager that comes back finds everything as it was."""
    await manager_end.hang_up()
    manager_end.reports.clear()
    assert see.pids(await manager_end.until(see.all_run(1, 2))) == see.pids(running)
    assert manager_end.connections == 2


async def test_killed_worker_is_started_again(manager_end, running, see) -> None:
    """A crash costs a worker its memory, not its place."""
    os.kill(see.pids(running)["l0"], signal.SIGKILL)
    report = await manager_end.until(lambda report: report.workers[0].restarts == 1)
    assert "signal 9" in report.workers[0].problem
    after = await manager_end.until(see.all_run(1, 2))
    assert see.pids(after)["l0"] != see.pids(running)["l0"]
    assert see.pids(after)["l1"] == see.pids(running)["l1"]


async def test_worker_that_cannot_start_is_given_up_with_its_last_lines(
    manager_end, two_workers, real_claim
) -> None:
    """Three tries, then the reason with what it said."""
    options = WorkerOptions(pre_import=("no_such_module_anywhere",))
    await manager_end.want(real_claim("c1", two_workers[0], options=options))
    report = await manager_end.until(
        lambda r: r.workers and r.workers[0].phase is ProcessPhase.FAILED
    )
    assert "no_such_module_anywhere" in report.workers[0].problem
    assert report.workers[0].restarts == 3


async def test_killed_scheduler_fails_and_takes_no_new_one(manager_end, running, see) -> None:
    """Its claim's futures died with it, so it is said and not papered over."""
    os.kill(see.pids(running)["scheduler"], signal.SIGKILL)
    report = await manager_end.until(lambda r: r.schedulers[0].phase is ProcessPhase.FAILED)
    assert "signal 9" in report.schedulers[0].problem
    await manager_end.until(lambda r: all(w.phase is ProcessPhase.FAILED for w in r.workers))


async def test_stopped_worker_dies_when_it_is_no_longer_wanted(
    agent, manager_end, running, see
) -> None:
    """SIGSTOP makes a process deaf to everything but SIGKILL."""
    os.kill(see.pids(running)["l1"], signal.SIGSTOP)
    await manager_end.want()
    await manager_end.until(see.empty)
    assert see.pids(running)["l1"] not in {row.id.pid for row in agent.marked()}


async def test_worker_above_its_memory_is_killed_with_both_numbers(
    manager_end, two_workers, real_claim
) -> None:
    """The agent stands in for the Nanny; a fresh worker alone exceeds 64 MiB."""
    options = WorkerOptions(memory_limit_bytes=64 * 2**20)
    await manager_end.want(real_claim("c1", two_workers[0], options=options))
    report = await manager_end.until(lambda r: r.workers and "of its" in r.workers[0].problem)
    assert "64 MiB of host memory" in report.workers[0].problem


async def test_one_worker_less_leaves_the_others_alone(
    manager_end, two_workers, real_claim, running, see
) -> None:
    """Its device is free again, and its claim goes on."""
    await manager_end.want(real_claim("c1", two_workers[0]))
    report = await manager_end.until(see.all_run(1, 1))
    assert see.pids(report)["l0"] == see.pids(running)["l0"]
    assert report.devices[1].state.may_be_leased


async def test_scheduler_chooses_whom_to_retire(
    manager_end, real_claim, two_workers, running
) -> None:
    """Told how many to keep, it retires one, which is reported and not started again."""
    claim = real_claim("c1", *two_workers)
    shrunk = claim.scheduler.model_copy(update={"keep_workers": 1})
    await manager_end.want(claim.model_copy(update={"scheduler": shrunk}))
    report = await manager_end.until(
        lambda r: ProcessPhase.RETIRED in {worker.phase for worker in r.workers}
    )
    assert sorted(w.phase for w in report.workers) == [ProcessPhase.RETIRED, ProcessPhase.RUNNING]


async def test_new_start_replaces_every_process(
    manager_end, real_claim, two_workers, running, see
) -> None:
    """Processes of a failed start are never taken for those of the next one."""
    workers = [w.model_copy(update={"lease_id": f"{w.lease_id}-b"}) for w in two_workers]
    await manager_end.want(real_claim("c1", *workers, start=2))
    report = await manager_end.until(
        lambda r: see.all_run(1, 2)(r) and {w.start for w in r.workers} == {2}
    )
    assert not set(see.pids(report).values()) & set(see.pids(running).values())


@pytest.mark.parametrize(
    ("different", "sentence"),
    [
        ({"os_user": "no-such-user-here"}, "no user"),
        ({"environment": "rapids"}, "no Python environment"),
    ],
)
async def test_impossible_claim_fails_with_a_sentence(
    manager_end, two_workers, real_claim, different, sentence
) -> None:
    """What this host cannot do is said in the scheduler's report."""
    await manager_end.want(real_claim("c1", two_workers[0], **different))
    report = await manager_end.until(
        lambda r: r.schedulers and r.schedulers[0].phase is ProcessPhase.FAILED
    )
    assert sentence in report.schedulers[0].problem


async def test_unknown_device_fails_its_worker(manager_end, joined, real_claim) -> None:
    """A device that is not here is no reason to fail the whole host."""
    await manager_end.want(real_claim("c1", WantedWorker(lease_id="l", device="GPU-nowhere")))
    report = await manager_end.until(
        lambda r: r.workers and r.workers[0].phase is ProcessPhase.FAILED
    )
    assert "no device" in report.workers[0].problem
