"""Fifty claims at once on four devices: all served, in their order, never two on one device."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from e2e_harness.api import Api
from e2e_harness.running_pool import RunningPool
from e2e_harness.seeding import ROUNDS, SEED
from waiting import eventually

CLAIMS = 50 * ROUNDS


@pytest.fixture
def crowd(pool: RunningPool) -> list[str]:
    """Fifty claims a round, asked for at once by eight threads; in the manager's own order."""
    apis = [Api(pool.url, pool.api.token, pool.journal) for _ in range(8)]
    with ThreadPoolExecutor(len(apis)) as threads:
        asked = list(threads.map(lambda n: apis[n % len(apis)].claim(name=f"c{n}"), range(CLAIMS)))
    for api in apis:
        api.close()
    views = sorted((pool.api.view(c) for c in asked), key=lambda v: (v["created_at"], v["id"]))
    return [str(view["id"]) for view in views]


def test_fifty_claims_are_served_in_their_order(pool: RunningPool, crowd: list[str]) -> None:
    """Each starts no later than those that came after it, computes, and goes."""
    user = pool.user()
    chance = random.Random(SEED)
    left = list(crowd)
    while left:
        ready = eventually(lambda: _running(pool, left), 20, "claims run")
        assert set(ready) <= set(left[:4]), "somebody further back was served first"
        claim_id = chance.choice(ready)
        assert user.ask("attach", claim_id=claim_id) == claim_id
        assert user.ask("compute", claim_id=claim_id) == 328350
        user.ask("close", claim_id=claim_id)
        pool.end(claim_id)
        left.remove(claim_id)
    pool.wait_free(4)


def _running(pool: RunningPool, left: list[str]) -> list[str]:
    """The claims that run, once the first four of those left all do."""
    running = [str(c["id"]) for c in pool.api.claims() if c["phase"] == "running"]
    return running if len(running) >= min(4, len(left)) else []
