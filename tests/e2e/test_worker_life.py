"""What workers leave behind, grow to and are restarted from; and who else is on a GPU."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from e2e_harness.devices import StubDevices
from e2e_harness.processes import kill_all, process
from e2e_harness.running_pool import MakePool, RunningPool
from e2e_harness.user import User
from waiting import eventually, stays


@pytest.fixture
def user(pool: RunningPool) -> Iterator[User]:
    """A user's script."""
    found = pool.user()
    yield found
    found.end()


def test_daemon_that_a_task_left_behind_goes_with_its_claim(pool: RunningPool, user: User) -> None:
    """A process with its own session and no parent of ours is gone once the claim has ended."""
    claim_id = user.ask("claim", gpus=1)
    daemon = process(user.ask("daemon", claim_id=claim_id))
    assert daemon is not None
    assert daemon.lives
    pool.end(claim_id)
    assert not daemon.lives


def test_worker_above_its_memory_is_killed_and_says_both_numbers(
    pool: RunningPool, user: User
) -> None:
    """Its user reads how much it used and how much it may use."""
    claim_id = user.ask("claim", gpus=1, memory="512MiB")
    assert user.ask("fill", claim_id=claim_id, size_bytes=900 * 2**20, deadline_s=60) == "error"
    reasons = eventually(
        lambda: [r for r in pool.api.reasons(claim_id) if "512 MiB" in r],
        10,
        "the claim names its limit",
        context=pool.tell(claim_id),
    )
    assert reasons[0].count("iB") >= 2
    pool.end(claim_id)


def test_client_restart_brings_all_workers_back(pool: RunningPool, user: User) -> None:
    """`client.restart()` works as with a Nanny."""
    claim_id = user.ask("claim", gpus=2)
    before = {found.pid for found in pool.workers_of(claim_id)}
    assert user.ask("restart", claim_id=claim_id) == 2
    assert user.ask("compute", claim_id=claim_id) == 328350
    assert not before & {found.pid for found in pool.workers_of(claim_id)}
    pool.end(claim_id)


def test_lost_scheduler_ends_the_users_wait_in_seconds(pool: RunningPool, user: User) -> None:
    """A script that waits for results is told, instead of hanging."""
    claim_id = user.ask("claim", gpus=1)
    user.ask("submit", claim_id=claim_id, tasks=1, seconds=60)
    user.tell("gather", claim_id=claim_id, timeout=60)
    pool.scheduler_of(claim_id).send(9)
    with pytest.raises(Exception, match=r"(?i)scheduler|cancelled"):
        user.answer(deadline_s=10)
    assert "scheduler" in pool.wait_ended(claim_id)
    assert "scheduler" in user.printed


def test_stopped_scheduler_is_told_to_its_user_until_it_goes_on(pool: RunningPool) -> None:
    """With the claim, in its explanation and in the status; no more once it goes on."""
    claim_id = pool.api.claim(1, name="still")
    pool.wait_phase(claim_id, "running")
    scheduler = pool.scheduler_of(claim_id)
    scheduler.send(signal.SIGSTOP)
    told = f"Its scheduler, process {scheduler.pid}, was stopped by SIGSTOP"
    eventually(lambda: told in pool.api.view(claim_id)["problem"], 30, "its user is told")
    assert any(told in line for line in pool.api.get(f"/claims/{claim_id}/explanation")["lines"])
    assert any(told in line for line in pool.api.get("/status")["problems"])
    scheduler.send(signal.SIGCONT)
    eventually(lambda: pool.api.view(claim_id)["problem"] == "", 30, "it is told no more")
    assert pool.api.get("/status")["problems"] == []
    assert pool.api.phase(claim_id) == "running"
    pool.end(claim_id)


@pytest.fixture
def stub_pool(make_pool: MakePool, stubs: Callable[[int], StubDevices]) -> RunningPool:
    """A pool of two stub devices of its own."""
    return make_pool(stubs(2)).start()


def test_foreign_process_is_shown_and_never_leased_over(stub_pool: RunningPool) -> None:
    """Its device is not leased until it is gone."""
    assert isinstance(stub_pool.devices, StubDevices)
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stub_pool.devices.state.add_process(0, stranger.pid, 2**30)
    eventually(lambda: _foreign(stub_pool) == [stranger.pid], 15, "it is shown")
    claim_id = stub_pool.api.claim(2)
    stays(lambda: stub_pool.api.phase(claim_id) == "pending", 1, "the claim waits")
    found = process(stranger.pid)
    assert found is not None
    kill_all([found])
    stranger.communicate()
    stub_pool.devices.state.remove_process(stranger.pid)
    stub_pool.wait_phase(claim_id, "running")
    stub_pool.end(claim_id)


def _foreign(pool: RunningPool) -> list[int]:
    return [found["pid"] for d in pool.api.get("/devices") for found in d["foreign"]]
