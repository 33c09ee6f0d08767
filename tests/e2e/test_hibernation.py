"""Whole processes: a claim hibernates, others use its devices, and it resumes with its results."""

import signal
from collections.abc import Iterator

import pytest
from e2e_harness.running_pool import RunningPool, strike
from e2e_harness.user import User
from waiting import eventually


@pytest.fixture
def user(pool: RunningPool) -> Iterator[User]:
    """A user's script."""
    found = pool.user()
    yield found
    found.end()


@pytest.fixture
def kept(pool: RunningPool, user: User) -> Iterator[tuple[str, str]]:
    """A claim that hibernates, and the digest of its results."""
    claim_id = user.ask("claim", gpus=1)
    digest = user.ask("keep", claim_id=claim_id, tasks=8, size_bytes=100_000)
    pool.api.hibernate(claim_id)
    pool.wait_phase(claim_id, "hibernated")
    yield claim_id, digest
    pool.end(claim_id)


def test_results_are_there_again_after_others_had_the_devices(
    pool: RunningPool, user: User
) -> None:
    """Hibernated, its devices leased to another claim, resumed: the very same results."""
    devices = pool.api.get("/status")["devices"]
    claim_id = user.ask("claim", gpus=devices)
    digest = user.ask("keep", claim_id=claim_id, tasks=8, size_bytes=100_000)
    pool.api.hibernate(claim_id)
    pool.wait_phase(claim_id, "hibernated")
    other = pool.api.claim(devices, name="other")
    pool.wait_phase(other, "running")
    pool.api.resume(claim_id)
    assert pool.api.phase(claim_id) == "resuming"
    pool.end(other)
    pool.wait_phase(claim_id, "running")
    assert user.ask("digest", claim_id=claim_id) == digest
    assert user.ask("compute", claim_id=claim_id) == 328350
    pool.end(claim_id)


def test_submitted_task_resumes_its_claim(
    pool: RunningPool, user: User, kept: tuple[str, str]
) -> None:
    """Nobody has to ask for it, and the task runs."""
    claim_id, digest = kept
    assert user.ask("compute", claim_id=claim_id) == 328350
    assert user.ask("digest", claim_id=claim_id) == digest
    assert "A task was submitted." in pool.api.reasons(claim_id)


@pytest.mark.parametrize("who", ["agent", "manager"])
@pytest.mark.parametrize("when", ["hibernating", "hibernated", "resumed"])
def test_results_outlive_agent_and_manager(
    pool: RunningPool, user: User, who: str, when: str
) -> None:
    """Killed at any step: the next one knows scheduler and holder, and nothing is lost."""
    claim_id = user.ask("claim", gpus=1)
    digest = user.ask("keep", claim_id=claim_id, tasks=8, size_bytes=4_000_000)
    pool.api.hibernate(claim_id)
    if when == "hibernating":
        _begin_anew(pool, who)
    pool.wait_phase(claim_id, "hibernated")
    if when == "hibernated":
        _begin_anew(pool, who)
    assert pool.api.resume(claim_id)["phase"] in ("resuming", "starting")
    if when == "resumed":
        _begin_anew(pool, who)
    pool.wait_phase(claim_id, "running")
    assert user.ask("digest", claim_id=claim_id) == digest
    assert user.ask("compute", claim_id=claim_id) == 328350
    pool.end(claim_id)


def test_dead_holder_is_told_and_what_can_be_is_computed_again(
    pool: RunningPool, user: User, kept: tuple[str, str]
) -> None:
    """The claim says how many results went with it, and lives on."""
    claim_id, digest = kept
    strike(pool.holder_of(claim_id), signal.SIGKILL)
    told = eventually(
        lambda: [r for r in pool.api.reasons(claim_id) if "8 that are computed again" in r],
        10,
        "its user is told",
        context=pool.tell(claim_id),
    )
    assert told
    pool.api.resume(claim_id)
    pool.wait_phase(claim_id, "running")
    assert user.ask("digest", claim_id=claim_id) != digest


def test_dead_scheduler_ends_a_claim_that_hibernates(pool: RunningPool, user: User) -> None:
    """Nobody knows any more what the kept results were."""
    claim_id = user.ask("claim", gpus=1)
    user.ask("keep", claim_id=claim_id, tasks=2, size_bytes=1000)
    pool.api.hibernate(claim_id)
    pool.wait_phase(claim_id, "hibernated")
    strike(pool.scheduler_of(claim_id), signal.SIGKILL)
    assert "Scheduler lost" in pool.wait_ended(claim_id)


def test_actor_keeps_its_claim_from_hibernating(pool: RunningPool, user: User) -> None:
    """It runs on with all it had, and its user reads which result it is."""
    claim_id = user.ask("claim", gpus=1)
    user.ask("actor", claim_id=claim_id)
    pool.api.hibernate(claim_id)
    eventually(
        lambda: any("is an actor" in reason for reason in pool.api.reasons(claim_id)),
        20,
        "its user is told",
        context=pool.tell(claim_id),
    )
    pool.wait_phase(claim_id, "running")
    pool.wait_workers(claim_id, 1)
    assert user.ask("compute", claim_id=claim_id) == 328350
    pool.end(claim_id)


def _begin_anew(pool: RunningPool, who: str) -> None:
    """Kill the agent or the manager, and start another."""
    running = pool.agent if who == "agent" else pool.manager
    assert running is not None
    strike(running, signal.SIGKILL)
    pool.start_agent() if who == "agent" else pool.start_manager()
    pool.wait_joined()
