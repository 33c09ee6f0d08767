"""Whole processes: a claim hibernates, others use its devices, and it resumes with its results."""

from collections.abc import Iterator

import pytest
from e2e_harness.running_pool import RunningPool
from e2e_harness.user import User


@pytest.fixture
def user(pool: RunningPool) -> Iterator[User]:
    """A user's script."""
    found = pool.user()
    yield found
    found.end()


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
