"""A manager that is killed between a warning and its action, and one that ends and comes back."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from manager_harness.idle_player import IdlePlayer, a_running_claim, apply
from manager_harness.pool_player import PoolPlayer
from manager_harness.virtual_time import ManualClock

from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.manager.store.sealing import load_seal
from jupyter_gpupool.manager.store.store import Store
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.signals import Signal

RELEASE = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "all"
action = "release"
"""
MINUTE = 60


@dataclass
class Managers:
    """Managers on one database, one after the other, and one agent that outlives them."""

    folder: Path
    time: ManualClock = field(default_factory=ManualClock)
    pool: PoolPlayer | None = None

    async def start(self) -> PoolPlayer:
        """The next one."""
        store = Store(
            f"sqlite:///{self.folder / 'manager.sqlite'}", load_seal(self.folder / "secret-key")
        )
        service = Service(store, Settings(), self.time.clock())
        await service.start()
        agents = {} if self.pool is None else self.pool.agents
        self.pool = PoolPlayer(service, store, self.time, agents)
        return self.pool

    async def replace(self, idler: IdlePlayer, *, killed: bool) -> IdlePlayer:
        """Another one, which the claim's agent has not joined yet."""
        await self.end(killed=killed)
        after = replace(idler, pool=await self.start())
        after.seen_s = idler.seen_s
        return after

    async def end(self, *, killed: bool = False) -> None:
        """It ends, or is gone without a word."""
        service = self.pool.service
        if killed:
            service._worker.cancel()  # nothing else is as sudden
            await asyncio.wait((service._worker,))
        else:
            await service.close()
        service.store.close()


@pytest.fixture
async def managers(tmp_path):
    """The first manager of a pool with rules, ready to be replaced."""
    managers = Managers(tmp_path)
    await apply(await managers.start(), RELEASE)
    yield managers
    await managers.end()


async def come_back(idler: IdlePlayer, *uses) -> None:
    """Its agent joins, and tells what it has told before once more."""
    idler.agent.uses = uses
    idler.agent.generation = 0
    await idler.pool.say(idler.agent, joins=True)
    idler.agent.uses = ()
    idler.agent.make_so(idler.pool.desired(idler.agent))
    await idler.pool.say(idler.agent)


@pytest.mark.parametrize("killed", [True, False])
async def test_deadline_of_a_warning_outlives_the_manager(managers, killed):
    """Neither sooner nor later than its user was told."""
    pool = managers.pool
    idler = await a_running_claim(pool)
    begin_s = pool.time.monotonic_s
    warned = (await idler.rest(17 * MINUTE)).warning
    after = await managers.replace(idler, killed=killed)
    pool.time.pass_s(MINUTE)
    now_s = after.pool.time.monotonic_s
    told = [after.use(s, s + MINUTE) for s in range(round(begin_s), round(now_s), MINUTE)]
    after.seen_s = now_s
    await come_back(after, *told)
    assert after.claim.warning == warned
    assert (await after.rest(MINUTE + 50)).phase is Phase.RUNNING
    assert (await after.rest(10)).phase is Phase.ENDING


async def test_what_an_agent_saw_while_the_manager_was_away_counts(managers):
    """A claim that was used then is not taken."""
    pool = managers.pool
    idler = await a_running_claim(pool)
    await idler.rest(17 * MINUTE)
    after = await managers.replace(idler, killed=True)
    pool.time.pass_s(5 * MINUTE)
    now_s = after.pool.time.monotonic_s
    busy = after.use(after.seen_s, after.seen_s + 60, Signal.TASKS)
    rest = after.use(after.seen_s + 60, now_s)
    after.seen_s = now_s
    await come_back(after, busy, rest)
    assert after.claim.warning is None
    assert after.claim.phase is Phase.RUNNING


async def test_nobody_is_warned_and_taken_in_hindsight(managers):
    """Whoever became idle while the manager was away has the whole notice."""
    pool = managers.pool
    idler = await a_running_claim(pool)
    await idler.rest(MINUTE)
    after = await managers.replace(idler, killed=False)
    pool.time.pass_s(30 * MINUTE)
    now_s = after.pool.time.monotonic_s
    told = [after.use(s, s + MINUTE) for s in range(round(after.seen_s), round(now_s), MINUTE)]
    after.seen_s = now_s
    await come_back(after, *told)
    left_s = (after.claim.warning.deadline - pool.time.wall).total_seconds()
    assert left_s == 5 * MINUTE
