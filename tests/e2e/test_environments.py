"""Claims in Python environments of their choice, from a user's script to a worker's interpreter."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e_harness.devices import SimulatedDevices
from e2e_harness.notebook import Notebook
from e2e_harness.running_pool import MakePool, RunningPool, Setup
from e2e_harness.user import User, UserFailed
from other_python import make_environment

OURS_ALONE = ("pydantic", "httpx", "websockets", "fastapi", "sqlalchemy", "traitlets", "IPython")
"""What managers, agents and kernels need, and what of it no environment of workers need have."""
ONE = {"workers": {"min": 1, "max": 1}}


@pytest.fixture(scope="module")
def second(folders: Callable[[], Path]) -> Path:
    """An environment with all that workers need, and without our package and its own needs."""
    folder = folders()
    make_environment(folder, without=OURS_ALONE)
    return folder


@pytest.fixture(scope="module")
def pool(make_pool: MakePool, second: Path) -> RunningPool:
    """A pool that offers it besides its own."""
    options = (f"--AgentApp.environments=second={second}",)
    return make_pool(SimulatedDevices(2), Setup(agent_options=options)).start()


@pytest.fixture
def user(pool: RunningPool) -> User:
    """Somebody whose own Python is that of the agent."""
    return pool.user()


def test_work_runs_in_the_environment_that_was_named(pool, second, user) -> None:
    """What the user's Python sends is read and computed by the other one."""
    claim_id = user.ask("claim", deadline_s=60, gpus=1, environment="second")
    assert user.ask("prefix", claim_id=claim_id) == str(second)
    assert user.ask("compute", claim_id=claim_id) == 328350
    user.ask("close", claim_id=claim_id)
    user.end()


def test_notebook_uses_an_environment_that_has_dask_and_nothing_of_ours(
    pool, second, tmp_path
) -> None:
    """Neither the modules beside it nor its cells on workers need more over there."""
    (tmp_path / "beside.py").write_text("answer = 42\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUPOOL_")}
    own = {"GPUPOOL_URL": pool.url, "GPUPOOL_TOKEN": pool.api.token, "IPYTHONDIR": str(tmp_path)}
    with Notebook(tmp_path, kept | own) as notebook:
        notebook.run("%gpupool claim 1 --environment second")
        shown = notebook.run("%%gpupool\nimport sys, beside\nprint(sys.prefix, beside.answer)")
        notebook.run("%gpupool release --all")
    assert f"{second} 42" in shown


def test_work_runs_in_the_kernels_own_environment(pool, user) -> None:
    """Which the user's script names by itself."""
    claim_id = user.ask("claim", deadline_s=60, gpus=1, environment="kernel")
    assert user.ask("compute", claim_id=claim_id) == 328350
    user.ask("close", claim_id=claim_id)
    user.end()


def test_kernel_of_another_python_is_refused_with_the_way_out(pool) -> None:
    """Both versions, before anything is started."""
    body = {**ONE, "used_from": {"versions": {"python": "3.10.1"}, "interpreter": "/opt/python"}}
    refused = pool.api.try_post("/claims", body)
    assert refused.status_code == 409
    assert "Python 3.10.1" in refused.json()["detail"]
    assert 'environment="kernel"' in refused.json()["hint"]


def test_misspelt_environment_is_told_with_those_there_are(pool, user) -> None:
    """As one sentence in the script that asked."""
    with pytest.raises(UserFailed, match='environment="second"') as failed:
        user.ask("claim", gpus=1, environment="secnd")
    assert failed.value.kind == "BadRequest"
    user.end()


def test_environments_of_the_pool_are_known_before_they_are_used(pool) -> None:
    """With versions to choose by."""
    views = pool.api.get("/environments")
    assert [view["name"] for view in views] == ["default", "second", "kernel"]
    assert views[0]["versions"] == views[1]["versions"]
