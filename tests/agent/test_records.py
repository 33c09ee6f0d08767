"""Records of what runs: whole or not at all, and never the only copy of who a process is."""

import json
import os

import pytest

from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.procfs import ProcessId
from jupyter_gpupool.agent.records import Records
from jupyter_gpupool.agent.restarts import History
from jupyter_gpupool.agent.seen import Stage
from jupyter_gpupool.pool.errors import Unavailable


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "running").mkdir()
    return tmp_path / "running"


@pytest.fixture
def records(folder) -> Records:
    return Records(folder, boot="boot-1")


def test_record_comes_back_as_it_was(records, worker_seen) -> None:
    """All that the next agent has to know."""
    seen = worker_seen(
        history=History(crashes_s=(1.5,), restarts=1),
        baselines=(7,),
        memory_limit_bytes=9,
        registered=True,
        problem="p",
        used=True,
        further=("GPU-2", "MIG-GPU-1/7/0"),
        share=1000,
    )
    records.write(seen)
    assert records.load().seen == (seen,)


def test_share_comes_back(records, worker_seen) -> None:
    """Of a worker that has a part of its device."""
    records.write(worker_seen(share=250))
    assert [seen.share for seen in records.load().seen] == [250]


def test_record_of_an_earlier_agent_is_of_one_whole_device(records, folder, worker_seen) -> None:
    """It said nothing of parts or of further devices."""
    records.write(worker_seen())
    [path] = folder.glob("*.json")
    content = json.loads(path.read_text())
    for name in ("further", "share", "baselines"):
        del content[name]
    path.write_text(json.dumps(content | {"baseline_bytes": 7}))
    [seen] = records.load().seen
    assert (seen.devices, seen.share, seen.baselines) == ((seen.device,), 1000, (7,))


def test_later_record_replaces_the_earlier(records, folder, worker_seen) -> None:
    """One file a process."""
    records.write(worker_seen(stage=Stage.FORKING, process=None))
    records.write(worker_seen())
    assert [seen.stage for seen in records.load().seen] == [Stage.ALIVE]
    assert len(list(folder.iterdir())) == 1


def test_removed_record_is_gone(records, worker_seen) -> None:
    """Removing it twice is fine."""
    records.write(worker_seen())
    records.remove(worker_seen())
    records.remove(worker_seen())
    assert records.load().seen == ()


def test_record_of_another_boot_names_no_process(records, folder, worker_seen) -> None:
    """After a reboot its pid is somebody else's."""
    records.write(worker_seen())
    [seen] = Records(folder, boot="boot-2").load().seen
    assert seen.process is None


@pytest.mark.parametrize("device", ["GPU-1", "MIG-GPU-1/7/0", "../../etc/passwd", "a,b", None])
def test_any_name_survives(records, folder, worker_seen, device) -> None:
    """Names that no file could bear are escaped."""
    key = ProcessKey("claim, with/all: of it", 3, "l/1" if device else None)
    records.write(worker_seen(key=key, device=device))
    assert [(seen.key, seen.device) for seen in records.load().seen] == [(key, device)]
    assert all(path.parent == folder for path in folder.iterdir())


@pytest.mark.parametrize("content", ["{", "[]", '{"boot": "boot-1"}', "null", "\x00\x00"])
def test_damaged_record_is_read_by_its_name(records, folder, worker_seen, content) -> None:
    """Who it is of is known; which process it is has to be looked for."""
    records.write(worker_seen())
    next(folder.iterdir()).write_text(content)
    loaded = records.load()
    [seen] = loaded.seen
    assert (seen.key, seen.device, seen.process) == (worker_seen().key, "SIM-1", None)
    assert "damaged" in loaded.problem


def test_empty_record_is_no_problem(records, folder, worker_seen) -> None:
    """A power cut may leave one, and nothing that it spoke of."""
    records.write(worker_seen())
    next(folder.iterdir()).write_text("")
    loaded = records.load()
    assert (len(loaded.seen), loaded.problem) == (1, "")


def test_strange_file_is_set_aside_and_said(records, folder) -> None:
    """Somebody may want to look at it."""
    (folder / "what.json").write_text("?")
    assert "what.json" in records.load().problem
    assert (folder / "what.strange").exists()
    assert records.load().problem == ""


def test_folder_that_is_gone_is_one_sentence(records, folder, worker_seen) -> None:
    """As is a full or read-only disk."""
    folder.rmdir()
    with pytest.raises(Unavailable, match="cannot write its state folder"):
        records.write(worker_seen())


def test_process_is_known_by_pid_and_start_time(records, worker_seen) -> None:
    """A pid alone would be somebody else's some day."""
    records.write(worker_seen(process=ProcessId(5, 77)))
    assert records.load().seen[0].process == ProcessId(5, 77)


def test_record_says_whether_its_device_was_used(records, worker_seen) -> None:
    """Without a process too: it is gone, and its device not proven free."""
    records.write(worker_seen(stage=Stage.FREEING, process=None, used=True))
    assert records.load().seen[0].used


def test_older_record_counts_as_used(records, folder, worker_seen) -> None:
    """An agent before this one did not say."""
    records.write(worker_seen())
    path = next(folder.iterdir())
    known = json.loads(path.read_text())
    del known["used"]
    path.write_text(json.dumps(known))
    assert records.load().seen[0].used


def test_name_of_half_a_worker_is_set_aside(records, folder) -> None:
    """A lease has a device, and a scheduler has neither."""
    (folder / "c1,1,l1,.json").write_text("{}")
    assert records.load().seen == ()


def test_text_of_a_record_can_be_sent(records, worker_seen) -> None:
    """What a process once said must not silence the next agent."""
    records.write(worker_seen(problem="bad \ud800"))
    assert records.load().seen[0].problem == "bad ?"


def test_what_was_set_aside_goes_after_a_week(records, folder) -> None:
    """As do the drafts of a dead agent; what is new stays."""
    names = ("a.strange", ".b.json.draft", "c.strange")
    for name in names:
        (folder / name).write_text("")
    for name in names[:2]:
        os.utime(folder / name, (0, 0))
    records.tidy()
    assert [path.name for path in folder.iterdir()] == ["c.strange"]


@pytest.mark.parametrize("stage", [Stage.FORKING, Stage.ALIVE, Stage.FAILED])
def test_shorter_record_leaves_nothing_of_a_longer_one(records, folder, worker_seen, stage) -> None:
    """Whichever way it is written."""
    records.write(worker_seen(stage=stage, problem="x" * 500))
    records.write(worker_seen(stage=stage, problem=""))
    assert (records.load().problem, records.load().seen[0].stage) == ("", stage)
