"""`jupyter gpupool demo`: the main job, from nothing to a result and back to nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_harness.deadlines import eventually
from e2e_harness.processes import carrying, kill_all

COMMAND = (sys.executable, "-m", "jupyter_gpupool.cli", "demo")
DEADLINE_S = 60


@pytest.fixture
def place(folders: Callable[[], Path]) -> Iterator[Path]:
    """A private home; nothing that carries its name may outlive a demo."""
    folder = folders()
    yield folder
    kill_all(carrying(f"GPUPOOL_TEST_POOL={folder}"))


def _start(place: Path, *options: str) -> subprocess.Popen[str]:
    own = {"HOME": str(place), "GPUPOOL_TEST_POOL": str(place), "TMPDIR": str(place)}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPOOL_", "JUPYTER_"))}
    return subprocess.Popen(
        [*COMMAND, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**kept, **own},
        cwd=place,
        text=True,
    )


def _left(place: Path) -> list[str]:
    return [found.command for found in carrying(f"GPUPOOL_TEST_POOL={place}")]


def test_demo_succeeds_and_leaves_no_process(place: Path) -> None:
    """It says what it runs on, ends with 0, and everything it started is gone."""
    demo = _start(place)
    out, err = demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 0, out + err
    assert "simulated" in out + err or "GPU" in out + err
    assert not _left(place)


def test_demo_in_json_is_one_document(place: Path) -> None:
    """Its standard output is JSON and nothing else."""
    demo = _start(place, "--json")
    out, err = demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 0, err
    assert json.loads(out)
    assert not _left(place)


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_interrupted_demo_leaves_nothing(place: Path, processes: int) -> None:
    """Ctrl-C early, in the middle and late: status 130, one line, no process."""
    demo = _start(place)
    try:
        eventually(lambda: len(_left(place)) >= processes or demo.poll() is not None, 30, "it runs")
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=DEADLINE_S)
    finally:
        demo.kill()
    assert demo.returncode == 130, out + err
    assert "Traceback" not in out + err
    eventually(lambda: not _left(place), 5, "nothing is left", context=lambda: str(_left(place)))
