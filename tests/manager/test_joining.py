"""One pool a user, also of one with several Jupyter runtime folders."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupyter_gpupool.client.discovery import from_runtime_file
from jupyter_gpupool.client.embedded import end, find_or_start
from jupyter_gpupool.client.manager_process import EmbeddedPlan
from jupyter_gpupool.manager.joining import take_or_join
from jupyter_gpupool.manager.state_folder import StateFolder

pytestmark = pytest.mark.e2e
_FIRST_USE = """
import sys
from pathlib import Path
from jupyter_gpupool.client.embedded import find_or_start
from jupyter_gpupool.client.manager_process import EmbeddedPlan
plan = EmbeddedPlan(runtime_file=Path(sys.argv[1]), options=tuple(sys.argv[2:]))
print(find_or_start(plan).manager_pid)
"""
MakePlan = Callable[[str], EmbeddedPlan]


@pytest.fixture
def plan_in(tmp_path: Path) -> Iterator[MakePlan]:
    """Plans of one user's pool, each with a runtime folder of its own; ends what they started."""
    plans = []

    def plan(folder: str) -> EmbeddedPlan:
        folders = (f"--state={tmp_path / 'state'}", f"--agent-state={tmp_path / 'agent'}")
        file = tmp_path / folder / "gpupool.json"
        options = (*folders, "--stop-all-on-exit", "--simulated=1")
        plans.append(EmbeddedPlan(runtime_file=file, options=options))
        return plans[-1]

    yield plan
    for made in plans:
        address = from_runtime_file(made.runtime_file)
        if address is not None and address.manager_pid is not None:
            end(address.manager_pid, address.manager_started, 30)


def test_second_runtime_folder_finds_the_pool_that_runs(plan_in: MakePlan) -> None:
    """What was started from one Jupyter server is there in the other."""
    first = find_or_start(plan_in("one"))
    assert find_or_start(plan_in("two")) == first
    assert plan_in("two").runtime_file.stat().st_mode & 0o077 == 0


def test_first_uses_from_many_folders_start_one_manager(plan_in: MakePlan) -> None:
    """At the same moment, when there is nothing to be found yet."""
    plans = [plan_in(f"folder-{number}") for number in range(6)]
    users = [
        subprocess.Popen(
            [sys.executable, "-c", _FIRST_USE, str(plan.runtime_file), *plan.options],
            stdout=subprocess.PIPE,
            text=True,
        )
        for plan in plans
    ]
    told = {user.communicate(timeout=120)[0].strip() for user in users}
    assert told == {str(find_or_start(plans[0]).manager_pid)}


def test_manager_waits_for_one_that_is_ending(tmp_path: Path) -> None:
    """That one has taken its runtime file away, and still has the state folder."""
    ending = StateFolder(tmp_path)
    with ThreadPoolExecutor(1) as thread:
        taking = thread.submit(take_or_join, tmp_path, tmp_path / "run" / "gpupool.json")
        with pytest.raises(TimeoutError):
            taking.result(0.2)
        ending.release()
        taken = taking.result(20)
    assert taken is not None
    taken.release()
