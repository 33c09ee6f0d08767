"""When a claim's folder goes: with the last of its processes here, in whatever order they end."""

import asyncio
from dataclasses import replace

import pytest

from jupyter_gpupool.agent.dropping import Dropping
from jupyter_gpupool.agent.leftovers import Leftovers
from jupyter_gpupool.agent.seen import Stage
from jupyter_gpupool.agent.state_folder import open_state_folder
from jupyter_gpupool.agent.table import Table
from jupyter_gpupool.agent.wanted import NOTHING, wanted_of
from jupyter_gpupool.protocol.link import Desired


class OneClaim:
    """A claim's folder, and the rows of its scheduler and of its worker, who are being stopped."""

    def __init__(self, tmp_path, scheduler, worker) -> None:
        self.folder = open_state_folder(tmp_path / "state")
        (self.folder.claim("c1") / "tmp").mkdir(parents=True)
        self.table = Table(lambda: None)
        self.scheduler = replace(scheduler, stage=Stage.STOPPING)
        self.worker = replace(worker, stage=Stage.STOPPING)
        for seen in (self.scheduler, self.worker):
            self.table.put(seen)
        self.dropping = Dropping(self.table, self.folder, Leftovers(), lambda: None)

    @property
    def left(self):
        return [path.name for path in self.folder.claims.iterdir()]


@pytest.fixture
def claim(tmp_path, scheduler_seen, worker_seen):
    return OneClaim(tmp_path, scheduler_seen(), worker_seen())


async def test_temporary_files_go_with_the_last_worker(claim):
    """Its scheduler still takes its time; the rest goes with that one."""
    await claim.dropping.after_end(claim.worker.key, NOTHING)
    assert (claim.left, list(claim.folder.claim("c1").iterdir())) == (["c1"], [])
    claim.table.put(replace(claim.worker, stage=Stage.FREEING))
    await claim.dropping.after_end(claim.scheduler.key, NOTHING)
    assert claim.left == []


async def test_nothing_goes_before_its_last_worker(claim):
    """It may be writing still."""
    await claim.dropping.after_end(claim.scheduler.key, NOTHING)
    assert (claim.folder.claim("c1") / "tmp").is_dir()


async def test_scheduler_that_ends_while_a_workers_files_are_removed_takes_the_rest(claim):
    """The worker's row says only afterwards that it has ended."""
    keys = (claim.worker.key, claim.scheduler.key)
    await asyncio.gather(*(claim.dropping.after_end(key, NOTHING) for key in keys))
    assert claim.left == []


async def test_claim_that_is_wanted_keeps_its_folder(claim, wanted_claim):
    """Its worker goes, and another one may come."""
    wanted = wanted_of(Desired(generation=1, claims=(wanted_claim("c1"),)))
    await claim.dropping.after_end(claim.worker.key, wanted)
    assert (claim.folder.claim("c1") / "tmp").is_dir()


async def test_agent_that_was_not_told_anything_yet_removes_what_the_last_one_began(claim):
    """And leaves the rest where it is: the claim may go on."""
    (claim.folder.claim("c1") / "tmp").rename(claim.folder.claims / ".gone-c1-1")
    await claim.dropping.after_end(claim.worker.key, None)
    assert claim.left == ["c1"]
