"""kill -9 of the agent and its zygote: what runs lives on, is adopted, and leaves nothing."""

import json
import os
import signal

import pytest

from jupyter_gpupool.agent import procfs


@pytest.fixture
async def orphaned(agent, manager_end, running):
    """A claim that runs on after its agent was killed; its last report."""
    agent.kill()
    await manager_end.until_alone()
    return running


def records_of(agent) -> list:
    return sorted((agent.state / "running").glob("*.json"))


async def test_next_agent_adopts_what_runs(agent, manager_end, orphaned, see) -> None:
    """The same processes, still running, in the very first report."""
    agent.start()
    first = await manager_end.until(lambda report: True)
    assert see.pids(first) == see.pids(orphaned)
    assert see.all_run(1, 2)(first)


async def test_adopted_claim_ends_completely(agent, manager_end, orphaned, see) -> None:
    """What a dead agent has forked, the next one can end."""
    agent.start()
    await manager_end.until(see.all_run(1, 2))
    await manager_end.want()
    await manager_end.until(see.empty)
    left = {row.id.pid for row in agent.marked()}
    assert not left & set(see.pids(orphaned).values())


async def test_device_stays_locked_while_no_agent_runs(
    agent, manager_end, orphaned, locked_elsewhere
) -> None:
    """The worker keeps the lock, so that another pool cannot lease its device."""
    assert locked_elsewhere(orphaned.devices[0].device.uuid)
    agent.start()
    report = await manager_end.until(lambda report: True)
    assert not any(found.state.held_elsewhere for found in report.devices)


async def test_adopted_worker_that_dies_is_started_again(agent, manager_end, orphaned, see) -> None:
    """Nobody can tell its exit code, its death is noticed all the same."""
    agent.start()
    await manager_end.until(see.all_run(1, 2))
    os.kill(see.pids(orphaned)["l0"], signal.SIGKILL)
    report = await manager_end.until(lambda r: r.workers[0].restarts == 1 and r.workers[0].pid)
    assert report.workers[0].pid != see.pids(orphaned)["l0"]


async def test_what_died_without_an_agent_is_noticed_at_its_start(
    agent, manager_end, orphaned, see
) -> None:
    """A scheduler that is gone is reported as failed, not taken for running."""
    os.kill(see.pids(orphaned)["scheduler"], signal.SIGKILL)
    agent.start()
    report = await manager_end.until(lambda r: r.schedulers and r.schedulers[0].problem)
    assert report.schedulers[0].phase == "failed"


async def test_process_without_its_pid_on_record_is_found(
    agent, manager_end, orphaned, see
) -> None:
    """As after a kill between the fork and the second writing of the record."""
    for path in records_of(agent):
        known = json.loads(path.read_text())
        path.write_text(json.dumps(known | {"pid": None, "stage": "forking"}))
    agent.start()
    report = await manager_end.until(see.all_run(1, 2))
    assert see.pids(report) == see.pids(orphaned)


async def test_damaged_records_lose_no_process(agent, manager_end, orphaned, see) -> None:
    """Their names say who they are of, and the report says that they are damaged."""
    for path in records_of(agent):
        path.write_text('{"half a rec')
    agent.start()
    report = await manager_end.until(see.all_run(1, 2))
    assert see.pids(report) == see.pids(orphaned)
    assert "damaged" in report.problem


async def test_process_without_any_record_is_ended(agent, manager_end, orphaned, see) -> None:
    """Nobody could ever want it again."""
    for path in records_of(agent):
        path.unlink()
    agent.start()
    report = await manager_end.until(lambda report: True)
    assert see.empty(report)
    assert not set(see.pids(orphaned).values()) & set(procfs.read_rows())


async def test_zygote_of_a_dead_agent_does_not_stay(agent, manager_end, running) -> None:
    """Even stopped, so that it cannot see its agent's end, it is gone with the next one."""
    [zygote] = agent.zygotes()
    os.kill(zygote, signal.SIGSTOP)
    agent.kill()
    await manager_end.until_alone()
    agent.start()
    await manager_end.until(lambda report: True)
    assert zygote not in procfs.read_rows()


async def test_dead_zygote_is_replaced(agent, manager_end, two_workers, real_claim, see) -> None:
    """The claim's processes never notice, and new ones can start."""
    await manager_end.want(real_claim("c1", two_workers[0]))
    before = await manager_end.until(see.all_run(1, 1))
    os.kill(agent.zygotes()[0], signal.SIGKILL)
    await manager_end.want(real_claim("c1", *two_workers))
    after = await manager_end.until(see.all_run(1, 2))
    assert see.pids(after)["l0"] == see.pids(before)["l0"]


async def test_worker_whose_zygote_died_is_still_watched(agent, manager_end, running, see) -> None:
    """Its end is noticed without its parent."""
    os.kill(agent.zygotes()[0], signal.SIGKILL)
    os.kill(see.pids(running)["l1"], signal.SIGKILL)
    report = await manager_end.until(lambda r: r.workers[1].restarts == 1 and see.all_run(1, 2)(r))
    assert report.workers[1].pid != see.pids(running)["l1"]
