"""`jupyter gpupool demo`: the main job, from nothing to a result and back to nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e_harness.processes import carrying, kill_all
from waiting import eventually

COMMAND = (sys.executable, "-m", "jupyter_gpupool.cli", "demo")
DEADLINE_S = 60


@dataclass(frozen=True, slots=True)
class Done:
    """A demo that has ended by itself."""

    status: int
    out: str
    err: str
    left: list[str]


@pytest.fixture(scope="module")
def places(folders: Callable[[], Path]) -> Iterator[Callable[[], Path]]:
    """Make private homes; nothing that carries the name of one may outlive a demo."""
    made: list[Path] = []

    def make() -> Path:
        made.append(folders())
        return made[-1]

    yield make
    for folder in made:
        kill_all(carrying(f"GPUPOOL_TEST_POOL={folder}"))


@pytest.fixture
def place(places: Callable[[], Path]) -> Path:
    """One such home."""
    return places()


@pytest.fixture(scope="module")
def both(places: Callable[[], Path]) -> dict[str, Done]:
    """A demo for people and one in JSON, run side by side."""
    begun = {option: (home := places(), _start(home, *option.split())) for option in ("", "--json")}
    return {option: _done(*demo) for option, demo in begun.items()}


def _done(home: Path, demo: subprocess.Popen[str]) -> Done:
    try:
        out, err = demo.communicate(timeout=DEADLINE_S)
    finally:
        demo.kill()
    return Done(demo.returncode, out, err, _left(home))


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


def test_demo_succeeds_and_leaves_no_process(both: dict[str, Done]) -> None:
    """It says what it runs on, ends with 0, and everything it started is gone."""
    demo = both[""]
    assert demo.status == 0, demo.out + demo.err
    assert "simulated" in demo.out + demo.err or "GPU" in demo.out + demo.err
    assert not demo.left


def test_demo_in_json_is_one_document(both: dict[str, Done]) -> None:
    """Its standard output is JSON and nothing else."""
    demo = both["--json"]
    assert demo.status == 0, demo.err
    assert json.loads(demo.out)
    assert not demo.left


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
