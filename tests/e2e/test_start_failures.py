"""What cannot start says so with its own last lines, after a bounded number of tries."""

import pytest
from e2e_harness.running_pool import RunningPool
from e2e_harness.user import UserFailed
from waiting import eventually

BROKEN = {"DASK_DISTRIBUTED__SCHEDULER__PRELOAD": "no_such_preload_module"}


def test_scheduler_that_cannot_start_fails_its_claim(pool: RunningPool) -> None:
    """After three tries the claim has failed and its reason holds the scheduler's last lines."""
    claim_id = pool.api.claim(env=BROKEN)
    reason = pool.wait_ended(claim_id, deadline_s=40)
    assert "no_such_preload_module" in reason
    story = pool.api.view(claim_id)["story"]
    assert sum(line["phase"] == "starting" for line in story) == 3


def test_user_is_told_why_the_scheduler_could_not_start(pool: RunningPool) -> None:
    """The script that waits gets the same reason, in seconds, not a traceback of ours."""
    user = pool.user()
    with pytest.raises(UserFailed, match="no_such_preload_module") as failed:
        user.ask("claim", deadline_s=40, gpus=1, env=BROKEN)
    assert failed.value.kind == "ClaimLost"
    user.end()


def test_worker_that_crashes_at_once_is_given_up(pool: RunningPool) -> None:
    """It is forked again three times, then the claim says so with the worker's last lines."""
    claim_id = pool.api.claim(pre_import=["no_such_module_to_import"])
    reason = pool.wait_ended(claim_id, deadline_s=60)
    assert "no_such_module_to_import" in reason


def test_worker_that_crashes_again_and_again_while_running_is_given_up(pool: RunningPool) -> None:
    """A running claim is told how often its worker ended, and gets another lease."""
    user = pool.user()
    claim_id = user.ask("claim", gpus=1)
    first = pool.api.view(claim_id)["leases"][0]["id"]
    for _ in range(4):
        pool.worker_of(claim_id).send(9)
        eventually(lambda: not pool.workers_of(claim_id), 5, "the worker is gone")
        eventually(lambda: pool.workers_of(claim_id), 20, "it is replaced")
    pool.wait_workers(claim_id, 1)
    leases = pool.api.view(claim_id)["leases"]
    assert leases[-1]["id"] != first
    assert any("three" in r or "3" in r for r in pool.api.reasons(claim_id))
    user.ask("close", claim_id=claim_id)
    user.end()
