"""What an interpreter is asked, and what counts as an answer."""

import os
import sys
from pathlib import Path

import pytest
from other_python import make_environment, packages_of

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.kernel_environment import check_kernels_own
from jupyter_gpupool.agent.probing import CannotRun, probe
from jupyter_gpupool.agent.stopping import wait_for_end
from jupyter_gpupool.agent.zygotes import NOBODY
from jupyter_gpupool.pool.errors import Conflict, NotAllowed
from jupyter_gpupool.protocol.versions import read_versions


@pytest.fixture
def script(tmp_path):
    """Makes a program that is no Python."""

    def make(text: str) -> Path:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return make


async def test_interpreter_tells_the_versions_it_would_load():
    """The same as somebody would read who runs inside."""
    probed = await probe(Path(sys.executable), None)
    assert probed.versions == read_versions()
    assert probed.problem == ""


async def test_environment_tells_all_it_lacks_and_how_to_mend_it(tmp_path):
    """With the very line to paste."""
    python = make_environment(tmp_path / "bare", without=("dask_cuda", "bokeh"))
    probed = await probe(python, None)
    assert "dask-cuda" not in probed.versions
    lacks = f"it lacks dask_cuda, bokeh: {python} -m pip install dask-cuda bokeh"
    assert probed.problem == lacks


async def test_versions_are_those_written_down_in_the_environment(tmp_path):
    """Nothing is imported for them."""
    python = make_environment(tmp_path / "old", without=("dask-",))
    metadata = packages_of(python) / "dask-2024.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dask\nVersion: 2024.1.0\n")
    assert (await probe(python, None)).versions["dask"] == "2024.1.0"


@pytest.mark.parametrize("text", ["exit 1", "echo hello", "echo [1]", "echo '{\"versions\": 1}'"])
async def test_program_that_does_not_answer_like_a_python_is_none(script, text):
    """Whatever it says instead."""
    probed = await probe(script(text), None)
    assert not probed.is_python
    assert probed.problem.startswith("it is no Python")


async def test_interpreter_that_hangs_is_given_up_and_ended(script, tmp_path, monkeypatch):
    """With all that it has started."""
    monkeypatch.setattr("jupyter_gpupool.agent.probing._ANSWERS_WITHIN_S", 0.5)
    hanging = script(f"mkfifo {tmp_path}/never; exec cat {tmp_path}/never")
    assert "does not answer" in (await probe(hanging, None)).problem
    assert not _running(str(tmp_path / "never"))


async def test_interpreter_that_talks_without_end_fills_no_memory(script):
    """It is listened to for a moment only."""
    assert not (await probe(script("exec yes"), None)).is_python


async def test_nobody_listens_to_what_an_interpreter_has_left_running(script, tmp_path):
    """It could write for ever; so it hears that its words have no reader."""
    python = script(f"setsid yes & echo $! > {tmp_path}/left")
    assert not (await probe(python, None)).is_python
    left = procfs.read_row(int((tmp_path / "left").read_text()))
    assert left is None or await wait_for_end(left.id, 10)


async def test_interpreter_that_may_not_be_run_says_nothing_of_its_environment(script):
    """Somebody else may be able to run it."""
    python = script("exit 0")
    python.chmod(0o644)
    with pytest.raises(CannotRun):
        await probe(python, None)


async def test_unreadable_kernel_is_told_with_its_path(script):
    """The way out is its user's: its folders, or another environment."""
    python = script("exit 0")
    python.chmod(0o600)
    with pytest.raises(NotAllowed, match=f"{python} cannot be run"):
        await check_kernels_own(python, None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
async def test_kernel_in_a_folder_closed_to_its_user_is_refused(script, tmp_path):
    """What root could read is no answer."""
    tmp_path.chmod(0o700)
    with pytest.raises(NotAllowed):
        await check_kernels_own(script("exit 0"), NOBODY)


async def test_kernel_without_what_workers_need_is_told_so(tmp_path):
    """Before anything is forked."""
    python = make_environment(tmp_path / "bare", without=("dask_cuda",))
    with pytest.raises(Conflict, match=r"it lacks dask_cuda: .* pip install dask-cuda"):
        await check_kernels_own(python, None)


def _running(word: str) -> bool:
    def command(process: Path) -> bytes:
        try:
            return (process / "cmdline").read_bytes()
        except OSError:
            return b""

    return any(word.encode() in command(path) for path in Path("/proc").glob("[0-9]*"))
