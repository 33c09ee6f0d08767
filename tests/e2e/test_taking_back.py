"""A queue gets its guarantee back from whoever uses it: told first, and nothing is lost by it."""

import pytest
from e2e_harness.running_pool import RunningPool, Setup
from waiting import eventually

POLICY = """
[queues.anns]
guarantee = { gpus = 2 }
users = ["ann"]
[queues.bobs]
users = ["bob"]
[scheduling]
grace = "2s"
"""


@pytest.fixture(scope="module")
def pool(make_pool, devices, folders) -> RunningPool:
    """A pool of two devices, which ann is guaranteed."""
    policy = folders() / "policy.toml"
    policy.write_text(POLICY)
    return make_pool(devices(2), Setup(manager_options=(f"--policy={policy}",))).start()


def test_claim_shrinks_after_its_notice_and_keeps_its_results(pool: RunningPool) -> None:
    """Its callback has run, what it computed is there, and whoever waited has the device."""
    ann, bob = pool.api_of("ann"), pool.api_of("bob")
    user = pool.user(bob)
    held = user.ask("claim", gpus=[1, 2], expect_reclaim=True)
    eventually(lambda: bob.running_workers(held) == 2, 20, "both workers run")
    user.ask("submit", claim_id=held, tasks=20, seconds=0.01)
    wanted = ann.claim(1)
    pool.wait_phase(wanted, "running")
    assert user.ask("reclaims") == ["reclaim"]
    assert user.ask("gather", claim_id=held, timeout=20) == sum(n**2 for n in range(20))
    assert bob.view(held)["phase"] == "running"
    assert bob.view(held)["warning"] is None
    for claim_id in (held, wanted):
        pool.end(claim_id)


def test_claim_that_keeps_no_device_hibernates_and_has_its_results_later(
    pool: RunningPool,
) -> None:
    """Its user is told for whom it was, and finds what was computed as soon as there is room."""
    ann, bob = pool.api_of("ann"), pool.api_of("bob")
    user = pool.user(bob)
    held = user.ask("claim", gpus=2)
    digest = user.ask("keep", claim_id=held, tasks=8, size_bytes=10_000)
    wanted = ann.claim(2)
    pool.wait_phase(wanted, "running")
    assert bob.view(held)["phase"] in ("hibernated", "resuming")
    assert any("needed by anns/ann" in reason for reason in bob.reasons(held))
    pool.end(wanted)
    pool.wait_phase(held, "running")
    assert user.ask("digest", claim_id=held) == digest
    pool.end(held)
