"""A claim on several hosts: its scheduler's tells of tasks, the others' of devices."""

import pytest
from manager_harness.idle_player import GIB, apply

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol.link import ClaimUse

RELEASE = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "all"
action = "release"
"""
MINUTE = 60
OF_SCHEDULER = frozenset({Signal.TASKS, Signal.CALLS, Signal.CLIENTS})


class Apart:
    """A claim whose scheduler is on host s and whose devices are on host a."""

    def __init__(self, pool, claim_id) -> None:
        self.pool = pool
        self.claim_id = claim_id
        self.silent = False

    @property
    def claim(self):
        return self.pool.now(self.claim_id)

    async def rest(self, for_s: float, step_s: float = 10.0, gpu: int = 0):
        """Both tell what they see, one after the other; a silent host of devices says nothing."""
        for _ in range(round(for_s / step_s)):
            begin_ms = round(self.pool.time.monotonic_s * 1000)
            self.pool.time.pass_s(step_s)
            window = {
                "claim_id": self.claim_id,
                "begin_ms": begin_ms,
                "end_ms": round(self.pool.time.monotonic_s * 1000),
            }
            devices = ClaimUse(
                **window,
                leases=tuple(lease.id for lease in self.pool.leases(self.claim)),
                quiet=frozenset({Signal.MEMORY}),
                gpu_peak=gpu,
                gpu_mean=gpu,
                held_bytes=GIB,
            )
            scheduler = ClaimUse(**window, has_scheduler=True, quiet=OF_SCHEDULER, clients=1)
            await self._say("s", scheduler)
            if not self.silent:
                await self._say("a", devices)
        return self.claim

    async def _say(self, host: str, use: ClaimUse) -> None:
        agent = self.pool.agents[host]
        agent.uses = (use,)
        await self.pool.say(agent)
        agent.uses = ()


@pytest.fixture
async def apart(pool):
    """That claim, under a rule that releases what is idle."""
    await apply(pool, RELEASE)
    hosts = [await pool.joined("s", 0, durable=True), await pool.joined("a", 2)]
    claim = await pool.claim(2)
    for _ in range(2):
        await pool.come_up(*hosts)
    assert pool.now(claim).phase is Phase.RUNNING
    assert pool.now(claim).scheduler.host_id == "s"
    return Apart(pool, claim.id)


async def test_all_that_is_known_of_a_claim_is_put_together(apart):
    """It is warned and taken as one on a single host."""
    warned = (await apart.rest(16 * MINUTE)).warning
    assert "no tasks, no calls, kernel at rest, GPU 0 %" in warned.reason
    assert (await apart.rest(5 * MINUTE)).phase is Phase.ENDING


async def test_device_that_is_busy_on_another_host_keeps_it(apart):
    """Though its scheduler has nothing to do."""
    assert (await apart.rest(60 * MINUTE, gpu=800)).warning is None


async def test_host_of_devices_that_is_silent_makes_it_unknown(apart):
    """What was announced is taken back, and nothing is taken."""
    await apart.rest(17 * MINUTE)
    apart.silent = True
    after = await apart.rest(30 * MINUTE)
    assert (after.phase, after.warning) == (Phase.RUNNING, None)
