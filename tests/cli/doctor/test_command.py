"""The command as its user runs it."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupyter_gpupool.client.embedded import EmbeddedPool

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user of a real pool."""
    with EmbeddedPool(tmp_path_factory.mktemp("pool"), options=("--simulated=2",)) as pool:
        assert pool.address is not None
        yield {"GPUPOOL_URL": pool.address.url, "GPUPOOL_TOKEN": pool.address.token}


def findings(done: "subprocess.CompletedProcess[str]") -> dict[str, str]:
    told = json.loads(done.stdout)["findings"]
    return {each["reference"]: each["severity"] for each in told}


def test_a_pool_that_answers_is_told_as_well(run: Run, pool: dict[str, str]):
    """So are its release, its environments, its clock and its devices."""
    found = findings(run("doctor", "--json", environment=pool))
    kept = ("pool-answers", "version-agrees", "clock-agrees", "devices-pools-own")
    assert {found.get(name) for name in kept} == {"well"}


def test_a_token_that_is_refused_is_a_problem(run: Run, pool: dict[str, str]):
    """Exit status 1, one document, and the token is nowhere in it."""
    wrong = "gpt_wrong_token_0123456789"
    done = run("doctor", "--json", environment=pool | {"GPUPOOL_TOKEN": wrong})
    assert (done.returncode, done.stderr, findings(done)["pool-unusable"]) == (1, "", "problem")
    assert wrong not in done.stdout


def test_people_get_text_in_time(run: Run):
    """Without a traceback, with words for what is wrong, within a few seconds."""
    started = time.monotonic()
    done = run("doctor")
    assert time.monotonic() - started < 30
    assert (done.returncode, done.stderr) == (1, "")
    assert "problem  pool-unusable" in done.stdout
    assert "\x1b" not in done.stdout


def test_no_pool_is_started(run: Run, tmp_path: Path):
    """Not even a folder is made."""
    home = {"HOME": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path / "run")}
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = run("doctor", "--json", environment=home | state)
    assert "pool-not-running" in findings(done)
    assert not {"run", "state"} & {path.name for path in tmp_path.iterdir()}
