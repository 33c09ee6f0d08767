"""A claim moves so that another fits: told first, with its results, whoever is killed meanwhile."""

import signal
from collections.abc import Iterator

import pytest
from e2e_harness.running_pool import RunningPool, Setup, strike
from e2e_harness.user import User
from waiting import eventually

POLICY = """
[queues.lab]
users = ["*"]
[scheduling]
moves = "done"
grace = "2s"
"""


@pytest.fixture(scope="module")
def pool(make_pool, devices, folders) -> RunningPool:
    """A pool of two devices where claims are moved."""
    policy = folders() / "policy.toml"
    policy.write_text(POLICY)
    return make_pool(devices(2), Setup(manager_options=(f"--policy={policy}",))).start()


@pytest.fixture
def halves(pool: RunningPool) -> Iterator[tuple[User, list[str]]]:
    """Two halves of bob's on two devices: he gave back the other two."""
    pool.wait_free(2)
    bob = pool.user(pool.api_of("bob"))
    claims = [bob.ask("claim", gpus=0.5) for _ in range(4)]
    by_device = {_device(pool, claim): claim for claim in claims}
    assert len(by_device) == 2
    kept = list(by_device.values())
    for claim in claims:
        if claim not in kept:
            pool.end(claim)
    yield bob, kept
    bob.end()
    for claim in list(pool.api.claims()):
        pool.end(claim["id"])


def test_results_move_with_their_claim(pool: RunningPool, halves: tuple[User, list[str]]) -> None:
    """The whole device that comes free is whose it was for, and both halves work on the other."""
    bob, kept = halves
    digests = {claim: bob.ask("keep", claim_id=claim, tasks=8, size_bytes=10_000) for claim in kept}
    ann = pool.api_of("ann")
    wanted = ann.claim(1)
    pool.wait_phase(wanted, "running")
    for claim in kept:
        pool.wait_phase(claim, "running")
        assert bob.ask("digest", claim_id=claim) == digests[claim]
        assert bob.ask("compute", claim_id=claim) == 328350
    assert {_device(pool, claim) for claim in kept}.isdisjoint({_device(pool, wanted)})
    told = [reason for claim in kept for reason in pool.api_of("bob").reasons(claim)]
    assert sum("Moved so that a claim of lab/ann fits." in reason for reason in told) >= 1
    assert sum(reason.startswith("Moved: 1 device") for reason in told) == 1


@pytest.mark.parametrize("who", ["agent", "manager"])
def test_move_outlives_agent_and_manager(
    pool: RunningPool, halves: tuple[User, list[str]], who: str
) -> None:
    """Killed while results are on their way: the next one goes on, and nothing is lost."""
    bob, kept = halves
    digests = {
        claim: bob.ask("keep", claim_id=claim, tasks=8, size_bytes=4_000_000) for claim in kept
    }
    wanted = pool.api_of("ann").claim(1)
    eventually(lambda: any(_has_left(pool, claim) for claim in kept), 20, "one is on its way")
    _begin_anew(pool, who)
    pool.wait_phase(wanted, "running", deadline_s=60)
    for claim in kept:
        pool.wait_phase(claim, "running", deadline_s=60)
        assert bob.ask("digest", claim_id=claim) == digests[claim]


def _has_left(pool: RunningPool, claim_id: str) -> bool:
    return pool.api.phase(claim_id) in ("hibernating", "hibernated", "resuming", "starting")


def _device(pool: RunningPool, claim_id: str) -> str:
    [lease] = pool.api.view(claim_id)["leases"]
    return str(lease["device"])


def _begin_anew(pool: RunningPool, who: str) -> None:
    """Kill the agent or the manager, and start another."""
    running = pool.agent if who == "agent" else pool.manager
    assert running is not None
    strike(running, signal.SIGKILL)
    pool.start_agent() if who == "agent" else pool.start_manager()
    pool.wait_joined()
