"""Records are written when they are needed, and not more often."""

import pytest

from jupyter_gpupool.agent.record_keeping import RecordKeeper
from jupyter_gpupool.agent.records import Records
from jupyter_gpupool.agent.seen import Stage
from jupyter_gpupool.agent.table import Table


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "running").mkdir()
    return tmp_path / "running"


@pytest.fixture
def table() -> Table:
    return Table(lambda: None)


@pytest.fixture
def keeper(folder, table) -> RecordKeeper:
    return RecordKeeper(Records(folder, boot="b"), table)


def stages(folder) -> list[Stage]:
    return [seen.stage for seen in Records(folder, boot="b").load().seen]


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.ALIVE])
def test_what_the_next_agent_must_know_is_written_at_once(keeper, folder, worker_seen, stage):
    """It could not find it out."""
    keeper.keep(worker_seen(stage=stage))
    assert stages(folder) == [stage]


async def test_what_runs_is_written_together(keeper, table, folder, worker_seen) -> None:
    """However often it spoke, once, as it is by then."""
    for problem in ("a", "b", "c"):
        table.put(worker_seen(problem=problem))
        keeper.keep(worker_seen(problem=problem))
    assert stages(folder) == []
    keeper.write_due()
    assert [seen.problem for seen in Records(folder, boot="b").load().seen] == ["c"]


async def test_what_is_forgotten_is_not_written_later(keeper, table, folder, worker_seen) -> None:
    """A record of nothing would be adopted."""
    table.put(worker_seen())
    keeper.keep(worker_seen())
    keeper.forget(worker_seen())
    table.forget(worker_seen().key)
    keeper.write_due()
    assert stages(folder) == []


def test_folder_that_cannot_be_written_is_said_and_tried_again(keeper, table, folder, worker_seen):
    """Nothing is lost once it can be."""
    folder.rmdir()
    table.put(worker_seen(stage=Stage.FREEING))
    keeper.keep(worker_seen(stage=Stage.FREEING))
    assert "cannot write" in keeper.problem
    folder.mkdir()
    keeper.retry()
    assert (keeper.problem, stages(folder)) == ("", [Stage.FREEING])
