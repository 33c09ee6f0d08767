"""What becomes of a process that ended by itself."""

import pytest

from jupyter_gpupool.agent.endings import Circumstances, after_failed_start, after_own_end
from jupyter_gpupool.agent.process_watch import Ended
from jupyter_gpupool.agent.restarts import History
from jupyter_gpupool.agent.seen import Stage

THREE_CRASHES = History(crashes_s=(1, 2, 3), restarts=3)


def ended(seen, status):
    return Ended(key=seen.key, process=seen.process, status=status)


def around(**different) -> Circumstances:
    values = {"retires": False, "scheduler_failed": False, "last_lines": "", "now_s": 10.0}
    return Circumstances(**(values | different))


def test_scheduler_is_given_up_with_its_last_lines(scheduler_seen) -> None:
    """Its claim fails with them."""
    seen = scheduler_seen()
    after = after_own_end(seen, ended(seen, 1), around(last_lines="ImportError: no foo"))
    assert after.stage is Stage.FAILED
    assert after.problem == (
        "The scheduler ended with exit code 1. Its last lines: ImportError: no foo"
    )


def test_crashed_worker_is_tried_again(worker_seen) -> None:
    """Its problem says why, until it is registered again."""
    seen = worker_seen()
    after = after_own_end(seen, ended(seen, -9), around())
    assert (after.stage, after.history.restarts) == (Stage.AGAIN, 1)
    assert after.problem == "The worker was killed by signal 9; it is being started again."


def test_worker_that_crashes_too_often_is_given_up(worker_seen) -> None:
    """With the reason and its last lines."""
    seen = worker_seen(history=THREE_CRASHES)
    after = after_own_end(seen, ended(seen, 1), around(last_lines="boom"))
    assert after.stage is Stage.FAILED
    assert "4 times within 5 min" in after.problem
    assert after.problem.endswith("Its last lines: boom")


def test_closed_worker_is_forked_again_without_blame(worker_seen) -> None:
    """As client.restart() wants it."""
    seen = worker_seen(history=THREE_CRASHES)
    after = after_own_end(seen, ended(seen, 0), around())
    assert (after.stage, after.problem) == (Stage.AGAIN, "")


@pytest.mark.parametrize("status", [0, 1, -9, None])
@pytest.mark.parametrize("how", ["retires", "retiring", "retired"])
def test_worker_that_was_to_go_has_retired(worker_seen, how, status) -> None:
    """However it ended, it is not forked again."""
    seen = worker_seen(retiring=how == "retiring", retired=how == "retired")
    after = after_own_end(seen, ended(seen, status), around(retires=how == "retires"))
    assert after.stage is Stage.RETIRED


def test_worker_of_a_failed_scheduler_is_given_up(worker_seen) -> None:
    """It would only wait for it."""
    seen = worker_seen()
    after = after_own_end(seen, ended(seen, 3), around(scheduler_failed=True))
    assert after.stage is Stage.FAILED


def test_unseen_end_is_clean_if_it_was_announced(worker_seen) -> None:
    """An adopted worker has no parent that could tell its exit code."""
    seen = worker_seen(closing="closed by its scheduler", history=THREE_CRASHES)
    assert after_own_end(seen, ended(seen, None), around()).stage is Stage.AGAIN
    silent = worker_seen(history=THREE_CRASHES)
    assert after_own_end(silent, ended(silent, None), around()).stage is Stage.FAILED


def test_killed_for_memory_counts_as_crash_and_says_so(worker_seen) -> None:
    """The reason is the agent's own, not the signal alone."""
    seen = worker_seen(killed_for="it used 9.6 GiB of its 10 GiB of host memory")
    after = after_own_end(seen, ended(seen, -9), around())
    assert len(after.history.crashes_s) == 1
    assert "9.6 GiB of its 10 GiB" in after.problem


def test_failed_fork_is_tried_again_if_that_may_help(worker_seen) -> None:
    """A zygote that died is replaced; a device that is not here stays away."""
    later = after_failed_start(worker_seen(), "gone", may_work_later=True, now_s=1)
    never = after_failed_start(worker_seen(), "gone", may_work_later=False, now_s=1)
    assert (later.stage, never.stage) == (Stage.AGAIN, Stage.FAILED)


def test_failed_fork_of_a_scheduler_is_final(scheduler_seen) -> None:
    """The manager starts its claim anew, with a new start."""
    after = after_failed_start(scheduler_seen(), "gone", may_work_later=True, now_s=1)
    assert (after.stage, after.problem) == (Stage.FAILED, "gone")
