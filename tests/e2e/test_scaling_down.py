"""Whole processes: a claim that is scaled to no worker loses nothing that it has computed."""

from collections.abc import Iterator

import pytest
from e2e_harness.running_pool import RunningPool
from e2e_harness.user import User
from waiting import eventually


@pytest.fixture
def user(pool: RunningPool) -> Iterator[User]:
    """A user's script."""
    found = pool.user()
    yield found
    found.end()


def test_results_outlive_the_last_worker(pool: RunningPool, user: User) -> None:
    """Scaled to none and up again: the very same results, and others had the devices between."""
    devices = pool.api.get("/status")["devices"]
    claim_id = user.ask("claim", gpus=devices)
    digest = user.ask("keep", claim_id=claim_id, tasks=8, size_bytes=100_000)
    user.ask("scale", claim_id=claim_id, workers=0)
    pool.wait_phase(claim_id, "hibernated")
    assert any("8 results" in reason for reason in pool.api.reasons(claim_id))
    other = pool.api.claim(devices, name="other")
    pool.wait_phase(other, "running")
    pool.end(other)
    user.ask("scale", claim_id=claim_id, workers=1)
    pool.wait_phase(claim_id, "running")
    assert user.ask("digest", claim_id=claim_id) == digest
    assert user.ask("compute", claim_id=claim_id) == 328350
    pool.end(claim_id)


def test_scaled_to_none_and_up_at_once(pool: RunningPool, user: User) -> None:
    """Whichever of both comes first on the way, nothing is lost."""
    claim_id = user.ask("claim", gpus=1)
    digest = user.ask("keep", claim_id=claim_id, tasks=8, size_bytes=4_000_000)
    user.ask("scale", claim_id=claim_id, workers=0)
    user.ask("scale", claim_id=claim_id, workers=1)
    pool.wait_phase(claim_id, "running")
    assert user.ask("digest", claim_id=claim_id) == digest
    pool.end(claim_id)


def test_actor_keeps_the_last_worker(pool: RunningPool, user: User) -> None:
    """It cannot be kept elsewhere: its claim keeps its worker, and says why."""
    claim_id = user.ask("claim", gpus=1)
    user.ask("actor", claim_id=claim_id)
    user.ask("scale", claim_id=claim_id, workers=0)
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
