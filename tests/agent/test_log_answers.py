"""What the manager is told when it asks for the last lines of a claim's processes."""

import os
from functools import partial
from pathlib import Path

import pytest

from jupyter_gpupool.agent.log_answers import answer_logs
from jupyter_gpupool.agent.state_folder import open_state_folder
from jupyter_gpupool.protocol.link import LogQuery


@pytest.fixture
def folder(tmp_path):
    """A state folder that keeps logs of claim c1."""
    folder = open_state_folder(tmp_path / "state")
    (folder.logs / "c1").mkdir()
    return folder


@pytest.fixture
def ask(folder):
    """Asks for logs of claim c1; what is kept of them, by process."""

    def ask(*processes, lines=3, claim="c1"):
        query = LogQuery(id=7, claim_id=claim, processes=processes, lines=lines)
        answer = answer_logs(query, folder, "vm")
        assert answer.id == query.id
        return {log.process: log for log in answer.logs}

    return ask


def _write(folder, name: str, content: bytes) -> None:
    (folder.logs / "c1" / name).write_bytes(content)


def test_last_lines_of_each_process_are_told(folder, ask):
    """In order, with the host that keeps them, and with whatever they hold."""
    _write(folder, "scheduler.log", b"one\ntwo\nthree\nfour\n")
    _write(folder, "worker-l1.log", b"a\rb\x1b[31m\xff\n\n")
    logs = ask("scheduler", "l1")
    assert logs["scheduler"].lines == ("two", "three", "four")
    assert logs["scheduler"].host == "vm"
    assert logs["l1"].lines == ("a\rb\x1b[31m\ufffd", "")


def test_what_is_not_kept_is_left_out(folder, ask):
    """Another host may keep it; here there is nothing to say."""
    _write(folder, "worker-l1.log", b"a\n")
    assert set(ask("scheduler", "l1", "l2")) == {"l1"}
    assert ask("scheduler", claim="c2") == {}


def test_long_log_is_told_from_a_whole_line_on(folder, ask):
    """At most a quarter of a MiB is read, and no half line of it is shown."""
    _write(folder, "scheduler.log", b"x" * 1000 + b"\n" + (b"y" * 99 + b"\n") * 5000)
    lines = ask("scheduler", lines=1000)["scheduler"].lines
    assert set(ask("scheduler", lines=1000)["scheduler"].lines) == {"y" * 99}
    assert len(lines) == 1000


def test_many_logs_stay_within_one_answer(folder, ask):
    """However many there are, the answer is not larger than the link takes."""
    names = [f"l{n}" for n in range(20)]
    for name in names:
        _write(folder, f"worker-{name}.log", b"z" * 300_000)
    assert sum(len(line) for log in ask(*names).values() for line in log.lines) <= 1_000_000


@pytest.mark.parametrize(
    "make", [partial(Path.symlink_to, target="/etc/passwd"), os.mkfifo, Path.mkdir]
)
def test_nothing_but_a_log_is_read(folder, ask, make):
    """No link leads elsewhere, and nothing that blocks is opened."""
    make(folder.logs / "c1" / "scheduler.log")
    log = ask("scheduler")["scheduler"]
    assert log.lines == ()
    assert log.problem.startswith("No log:")


def test_folder_that_is_a_link_is_not_followed(folder, ask):
    """Only what the agent itself has made is read."""
    (folder.logs / "c2").symlink_to(folder.logs / "c1")
    _write(folder, "scheduler.log", b"one\n")
    assert ask("scheduler", claim="c2") == {}
