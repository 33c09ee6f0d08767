"""What a new agent takes over from a dead one."""

import pytest

from jupyter_gpupool.agent.adoption import adopt
from jupyter_gpupool.agent.footprint import HOST_MARK, Footprint, Look
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.procfs import ProcessId
from jupyter_gpupool.agent.seen import Seen, Stage

OURS = {HOST_MARK: "host-1"}


def footprint_of(seen: Seen) -> Footprint:
    return Footprint(
        key=seen.key, host_id="host-1", leader=seen.process, uid=None, log=f"/log/{seen.key}"
    )


def take_over(recorded, rows, environments=None, outputs=None):
    look = Look(
        environment=lambda pid: (environments or {}).get(pid, {}),
        output=lambda pid: (outputs or {}).get(pid, ()),
        user=lambda _: 0,
    )
    return adopt(
        recorded,
        {row.id.pid: row for row in rows},
        look,
        footprint_of=footprint_of,
        host_id="host-1",
        now_s=5.0,
    )


def test_living_process_is_adopted_as_it_is(worker_seen, row) -> None:
    """And is no stray."""
    seen = worker_seen(process=ProcessId(101, 7))
    found = take_over([seen], [row(101, started=7)], {101: OURS})
    assert (found.seen, found.strays) == ((seen,), ())


def test_process_without_pid_is_found_by_its_log(worker_seen, row) -> None:
    """The first of its session that writes there."""
    seen = worker_seen(process=None, stage=Stage.FORKING)
    log = f"/log/{seen.key}"
    rows = [row(101), row(102, session=101)]
    outputs = {101: {log}, 102: {log}}
    [after] = take_over([seen], rows, {101: OURS, 102: OURS}, outputs).seen
    assert (after.stage, after.process) == (Stage.ALIVE, ProcessId(101, 101))


def test_fork_that_never_came_is_done_again(worker_seen) -> None:
    """Nobody has seen it run."""
    [after] = take_over([worker_seen(process=None, stage=Stage.FORKING)], []).seen
    assert after.stage is Stage.AGAIN


def test_fork_that_may_have_come_has_used_its_device(worker_seen, row) -> None:
    """It may have ended before anyone looked."""
    [after] = take_over([worker_seen(process=None, stage=Stage.FORKING)], []).seen
    assert after.used


def test_scheduler_of_an_earlier_boot_has_failed(scheduler_seen) -> None:
    """A reboot takes everything with it."""
    [after] = take_over([scheduler_seen(process=None)], []).seen
    assert (after.stage, after.failed_at_s) == (Stage.FAILED, 5.0)


def test_scheduler_whose_fork_may_have_come_has_failed(scheduler_seen) -> None:
    """A second one would know nothing of the workers and clients of the first."""
    [after] = take_over([scheduler_seen(process=None, stage=Stage.FORKING)], []).seen
    assert after.stage is Stage.FAILED


@pytest.mark.parametrize("stage", [Stage.FAILED, Stage.RETIRED, Stage.AGAIN])
def test_what_was_settled_stays_settled(stage, worker_seen) -> None:
    """A new agent does not try again what was given up."""
    [after] = take_over([worker_seen(stage=stage)], []).seen
    assert after.stage is stage


@pytest.mark.parametrize("stage", [Stage.STOPPING, Stage.FREEING])
def test_what_was_going_goes_on(stage, worker_seen) -> None:
    """Its device is verified from the beginning."""
    [after] = take_over([worker_seen(stage=stage, process=None)], []).seen
    assert after.stage is Stage.STOPPING


def test_marked_process_without_record_is_a_stray(worker_seen, row) -> None:
    """A dead agent's zygote, say. What bears another host's mark is not ours to judge."""
    environments = {200: OURS, 201: {HOST_MARK: "host-2"}}
    found = take_over([], [row(200), row(201), row(202)], environments)
    assert [stray.id.pid for stray in found.strays] == [200]


def test_child_of_an_adopted_process_is_no_stray(worker_seen, row) -> None:
    """It belongs to its worker."""
    seen = worker_seen(key=ProcessKey("c1", 1, "l1"), process=ProcessId(101, 101))
    rows = [row(101), row(150, parent=101)]
    assert take_over([seen], rows, {101: OURS, 150: OURS}).strays == ()
