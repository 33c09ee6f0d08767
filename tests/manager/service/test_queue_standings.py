"""How queues stand: what a pass would say, looked at no oftener than is good for the pool."""

import asyncio
from collections import Counter
from functools import partial

from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.queue_standings import QueueStanding, QueueStandings
from jupyter_gpupool.pool.ids import UserName

TEAMS = """
[queues.research]
guarantee = { gpus = 2 }
[queues.vision]
parent = "research"
users = ["ann"]
[queues.others]
users = ["*"]
"""


async def test_queues_stand_as_a_pass_sees_them(pool):
    """What stands below counts above; what nobody guarantees is shared by what is wanted."""
    await pool.joined("a", 4)
    command = ApplyPolicy(source=TEAMS, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))
    await pool.claim(3)
    await pool.claim(2, user="bob")
    pool.time.pass_s(3600)
    found = await pool.service.queue_standings.now()
    assert set(found) == {"research", "vision", "others"}
    vision, others = found["vision"], found["others"]
    assert (vision.held, vision.share, vision.waiting, vision.waiting_claims) == (3000, 3000, 0, 0)
    assert (others.held, others.share, others.waiting, others.waiting_claims) == (0, 1000, 2000, 1)
    assert found["research"].held == 3000
    assert found["research"].used_s == vision.used_s > 0 == others.used_s


class Looked:
    """A pool that counts how often it is looked at, and how long each look takes."""

    def __init__(self, pool, took_s: float = 0.0) -> None:
        self.times, self.mark, self.now_s = 0, 0, 100.0
        self._pool, self._took_s = pool, took_s

    def look(self):
        """The pool now."""
        self.times += 1
        self.now_s += self._took_s
        return self._pool.service.look(), Counter()

    def standings(self) -> QueueStandings:
        """What is under test."""
        return QueueStandings(self.look, lambda: self.mark, lambda: self.now_s)


async def test_nothing_new_is_looked_at_once_a_second(pool):
    """However many ask, and at once."""
    looked = Looked(pool)
    standings = looked.standings()
    await asyncio.gather(*(standings.now() for _ in range(5)))
    looked.now_s += 0.9
    await standings.now()
    assert looked.times == 1
    looked.now_s += 0.2
    await standings.now()
    assert looked.times == 2


async def test_what_has_happened_is_seen_at_once(pool):
    """In a pool where a look costs nothing."""
    looked = Looked(pool)
    standings = looked.standings()
    assert await standings.now() == {
        "default": QueueStanding(held=0, share=0, waiting=0, waiting_claims=0, used_s=0.0)
    }
    looked.mark += 1
    await standings.now()
    assert looked.times == 2


async def test_looks_that_take_long_are_rare(pool):
    """One that took a second holds for ten, whatever happens."""
    looked = Looked(pool, took_s=1.0)
    standings = looked.standings()
    await standings.now()
    looked.mark, looked.now_s = 1, looked.now_s + 9.9
    await standings.now()
    assert looked.times == 1
    looked.now_s += 0.2
    await standings.now()
    assert looked.times == 2
