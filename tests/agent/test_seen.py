"""How a process reads in a report, and what it may say of itself."""

import pytest

from jupyter_gpupool.agent.procfs import ProcessId
from jupyter_gpupool.agent.restarts import History
from jupyter_gpupool.agent.seen import (
    Stage,
    forked,
    forking,
    phase_of,
    scheduler_report,
    scheduler_said,
    worker_named_by_scheduler,
    worker_report,
    worker_said,
)
from jupyter_gpupool.protocol.launch import SchedulerState, WorkerState
from jupyter_gpupool.protocol.link import ProcessPhase


def a_state(**different) -> SchedulerState:
    values = {"address": "tls://127.0.0.1:1", "dashboard_port": 2, "workers": ()}
    return SchedulerState(**(values | different))


@pytest.mark.parametrize(
    ("different", "phase"),
    [
        ({"stage": Stage.FORKING}, ProcessPhase.STARTING),
        ({}, ProcessPhase.STARTING),
        ({"registered": True}, ProcessPhase.RUNNING),
        ({"history": History(restarts=1)}, ProcessPhase.RESTARTING),
        ({"history": History(restarts=1), "stage": Stage.FORKING}, ProcessPhase.RESTARTING),
        ({"history": History(restarts=1), "registered": True}, ProcessPhase.RUNNING),
        ({"stage": Stage.AGAIN}, ProcessPhase.RESTARTING),
        ({"registered": True, "retiring": True}, ProcessPhase.RETIRING),
        ({"retired": True}, ProcessPhase.RETIRING),
        ({"stage": Stage.RETIRED}, ProcessPhase.RETIRED),
        ({"stage": Stage.FAILED}, ProcessPhase.FAILED),
        ({"stage": Stage.STOPPING, "registered": True}, ProcessPhase.STOPPING),
        ({"stage": Stage.FREEING}, ProcessPhase.STOPPING),
    ],
)
def test_each_stage_has_its_phase(worker_seen, different, phase) -> None:
    """The manager hears of every step."""
    assert phase_of(worker_seen(**different)) is phase


def test_pid_is_reported_while_it_may_run(worker_seen) -> None:
    """A dead process's pid would be somebody else's some day."""
    assert worker_report(worker_seen()).pid == 101
    assert worker_report(worker_seen(stage=Stage.AGAIN)).pid is None


def test_scheduler_runs_once_it_listens(scheduler_seen) -> None:
    """Its report has the address."""
    silent = scheduler_seen(address=None)
    assert scheduler_report(silent).phase is ProcessPhase.STARTING
    report = scheduler_report(scheduler_said(silent, a_state()))
    assert (report.phase, report.address) == (ProcessPhase.RUNNING, "tls://127.0.0.1:1")


def test_worker_is_registered_by_either_word(worker_seen) -> None:
    """Its own or its scheduler's, whichever comes first."""
    by_itself = worker_said(worker_seen(), WorkerState(registered=True))
    by_scheduler = worker_named_by_scheduler(worker_seen(), a_state(workers=("l1",)))
    assert by_itself.registered
    assert by_scheduler.registered


def test_older_word_does_not_undo_a_newer_one(worker_seen) -> None:
    """Both speak on sockets of their own."""
    seen = worker_seen(registered=True)
    assert worker_named_by_scheduler(seen, a_state(workers=())).registered
    assert worker_said(seen, WorkerState(registered=False)).registered


def test_closing_worker_is_registered_no_more(worker_seen) -> None:
    """It says why."""
    after = worker_said(worker_seen(registered=True), WorkerState(registered=False, closing="bye"))
    assert (after.registered, after.closing) == (False, "bye")


def test_registered_worker_has_no_problem_any_more(worker_seen) -> None:
    """The restart it told of is over."""
    seen = worker_seen(problem="it is being started again")
    assert worker_said(seen, WorkerState(registered=True)).problem == ""


def test_retired_stays_retired(worker_seen) -> None:
    """A scheduler that forgets it changes nothing."""
    retired = worker_named_by_scheduler(worker_seen(), a_state(retired=("l1",)))
    assert worker_named_by_scheduler(retired, a_state()).retired


def test_retiring_may_be_taken_back(worker_seen) -> None:
    """Scaled up again before it had begun."""
    retiring = worker_named_by_scheduler(worker_seen(), a_state(retiring=("l1",)))
    assert not worker_named_by_scheduler(retiring, a_state(workers=("l1",))).retiring


def test_new_process_inherits_nothing_that_was_said(worker_seen) -> None:
    """It has to register itself."""
    seen = worker_seen(stage=Stage.AGAIN, registered=True, closing="x", killed_for="y")
    after = forking(seen)
    assert (after.registered, after.closing, after.killed_for) == (False, "", "")


def test_word_that_came_before_the_pid_is_kept(worker_seen) -> None:
    """A child may be quicker than its zygote's answer."""
    said = worker_said(forking(worker_seen()), WorkerState(registered=True))
    after = forked(said, ProcessId(7, 7))
    assert (after.stage, after.registered) == (Stage.ALIVE, True)


def test_fork_that_is_unwanted_by_then_stays_so(worker_seen) -> None:
    """Its stop waits for the pid."""
    after = forked(worker_seen(stage=Stage.STOPPING), ProcessId(7, 7))
    assert (after.stage, after.process) == (Stage.STOPPING, ProcessId(7, 7))


def test_busy_scheduler_does_not_register_the_next_process(worker_seen) -> None:
    """It names the dead one for a while; the new one counts once it was not named, or says so."""
    again = forked(forking(worker_seen(used=True)), ProcessId(7, 7))
    stale = worker_named_by_scheduler(again, a_state(workers=("l1",)))
    assert not stale.registered
    forgotten = worker_named_by_scheduler(stale, a_state())
    assert worker_named_by_scheduler(forgotten, a_state(workers=("l1",))).registered
    assert worker_said(stale, WorkerState(registered=True)).registered


@pytest.mark.parametrize("stage", [Stage.FAILED, Stage.AGAIN, Stage.STOPPING, Stage.FREEING])
def test_late_word_changes_nothing(worker_seen, scheduler_seen, stage) -> None:
    """Least of all the reason why it was given up."""
    seen = worker_seen(stage=stage, problem="why")
    assert worker_named_by_scheduler(seen, a_state(workers=("l1",))) == seen
    assert worker_said(seen, WorkerState(registered=True)) == seen
    given_up = scheduler_seen(stage=stage, problem="why")
    assert scheduler_said(given_up, a_state()) == given_up


def test_problem_lasts_until_the_next_process_works(worker_seen) -> None:
    """Also if it is quicker than its zygote's answer."""
    again = worker_said(forking(worker_seen(problem="why")), WorkerState(registered=True))
    assert again.problem == "why"
    assert forked(again, ProcessId(7, 7)).problem == ""


def test_fork_has_no_process_until_it_has_its_own(worker_seen) -> None:
    """The one before is nobody's leader any more."""
    assert forking(worker_seen()).process is None


def test_device_is_used_from_the_fork_on(worker_seen) -> None:
    """And is not by what was given up before."""
    before = worker_seen(stage=Stage.FAILED, process=None)
    assert not before.may_use_device
    assert forked(before, ProcessId(7, 7)).may_use_device


def test_scheduler_names_those_that_retire_on_any_host(scheduler_seen) -> None:
    """Their own agents cannot know."""
    said = scheduler_said(scheduler_seen(), a_state(retiring=("l7",), retired=("l8",)))
    report = scheduler_report(said)
    assert (report.retiring, report.retired) == (("l7",), ("l8",))


def test_scheduler_that_says_too_much_is_reported_in_part(scheduler_seen) -> None:
    """The newest of its workers, each once, and how its sentence begins."""
    names = tuple(f"l{number}" for number in range(9_999))
    said = a_state(
        retiring=(*names, *names), retired=(*names, "l" * 4096, "\1"), problem="why " * 1000
    )
    report = scheduler_report(scheduler_said(scheduler_seen(), said))
    assert report.retiring == report.retired == names[-512:]
    assert said.problem.startswith(report.problem)
    assert len(report.model_dump_json()) < 20_000


def test_worker_that_goes_is_quoted_in_part(worker_seen) -> None:
    """Its sentence is a user's, and ends in the host's report."""
    said = worker_said(worker_seen(), WorkerState(registered=False, closing="bye " * 1000))
    assert len(said.closing) == 1000
