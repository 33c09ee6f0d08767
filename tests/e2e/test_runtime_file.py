"""The embedded pool's runtime file: damaged, stale or open to others."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e_harness.interpreters import open_to
from e2e_harness.launching import give
from e2e_harness.processes import carrying, kill_all

from jupyter_gpupool.client.discovery import runtime_file

NOBODY = 65534
_SCRIPT = """
import jupyter_gpupool as gpupool
from distributed import Client
with gpupool.claim(gpus=1) as cluster, Client(cluster) as client:
    print(client.submit(sum, [1, 2, 3]).result(timeout=30))
"""


@dataclass(frozen=True, slots=True)
class Home:
    """A user's private home, and how their Python is run."""

    folder: Path
    interpreter: Path
    uid: int | None

    def claim(self) -> "subprocess.CompletedProcess[str]":
        """Run a script that claims from the user's own pool."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPOOL_", "JUPYTER_"))}
        own = {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / "run"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "GPUPOOL_TEST_POOL": str(self.folder),
        }
        return subprocess.run(
            [str(self.interpreter), "-c", _SCRIPT],
            env={**kept, **own},
            cwd=self.folder,
            user=self.uid,
            group=self.uid,
            extra_groups=None if self.uid is None else [],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def write(self, text: str, mode: int = 0o600) -> Path:
        """The runtime file, as somebody might have left it."""
        path = self.folder / "run" / runtime_file().name
        path.write_text(text)
        path.chmod(mode)
        give(path, self.uid)
        return path


@pytest.fixture
def home(folders: Callable[[], Path]) -> Iterator[Home]:
    """An empty home; what is started from it ends with the test.

    Root's own pool would be the machine's: so root tests it as another user.
    """
    folder = folders()
    for name in ("run", "config"):
        (folder / name).mkdir(mode=0o700)
    config = f"c.AgentApp.simulated_host = {folder.name!r}\n"
    (folder / "config" / "jupyter_gpupool_config.py").write_text(config)
    uid = NOBODY if os.geteuid() == 0 else None
    interpreter = Path(sys.executable) if uid is None else open_to(uid, folders())
    if interpreter is None:
        pytest.skip("no Python here that another user may run")
    give(folder, uid)
    yield Home(folder, interpreter, uid)
    while left := carrying(f"GPUPOOL_TEST_POOL={folder}"):
        kill_all(left)


@pytest.mark.parametrize(
    "text",
    ['{"url": "http://127', '{"url": 1, "token": [], "manager_pid": "x"}'],
    ids=["cut off", "wrong types"],
)
def test_damaged_runtime_file_is_replaced(home: Home, text: str) -> None:
    """A pool is started and the claim works."""
    path = home.write(text)
    done = home.claim()
    assert (done.returncode, done.stdout.strip()) == (0, "6"), done.stderr
    assert json.loads(path.read_text())["manager_pid"]


def test_runtime_file_of_a_dead_manager_is_replaced(home: Home) -> None:
    """Its pid belongs to nobody; a new pool is started."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    values = {"url": "http://127.0.0.1:1", "token": "gpt_old", "manager_pid": gone.pid}
    home.write(json.dumps(values))
    done = home.claim()
    assert (done.returncode, done.stdout.strip()) == (0, "6"), done.stderr


def test_runtime_file_that_others_may_read_is_refused(home: Home) -> None:
    """One line that says what to do; the token in it is not used."""
    home.write(json.dumps({"url": "http://127.0.0.1:1", "token": "x", "manager_pid": 1}), 0o644)
    done = home.claim()
    assert done.returncode != 0
    assert runtime_file().name in done.stderr.strip().splitlines()[-1]
