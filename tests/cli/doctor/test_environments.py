"""Whether workers can read what this Python pickles."""

from typing import Any

import pytest

from jupyter_gpupool.cli.doctor.environments import judge_environments
from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.pool_view import PoolView
from jupyter_gpupool.protocol.using import EnvironmentView

HERE = {"python": "3.11.2", "numpy": "2.1"}
SAME = EnvironmentView(name="same", versions=HERE)
OTHER = EnvironmentView(name="other", versions=HERE | {"python": "3.13.1"}, is_default=True)


@pytest.fixture
def judged(status):
    """What is found, given the pool's environments."""

    def judge(*environments: EnvironmentView) -> list[Any]:
        view = PoolView(status=status(), environments=environments)
        return list(judge_environments(view, HERE))

    return judge


def test_the_default_environment_that_agrees_is_well(judged):
    """Whatever else there is."""
    (found,) = judged(SAME.model_copy(update={"is_default": True}), OTHER)
    assert found.severity is Severity.WELL


def test_another_environment_that_agrees_is_the_way_out(judged):
    """It works for who names it."""
    (found,) = judged(OTHER, SAME)
    assert (found.severity, 'environment="same"' in found.mend) == (Severity.WARNING, True)


def test_no_environment_that_agrees_is_a_problem(judged):
    """The sentence has both versions."""
    (found,) = judged(OTHER)
    assert found.severity is Severity.PROBLEM
    assert ("3.11.2" in found.what, "3.13.1" in found.what) == (True, True)


def test_an_environment_that_lacks_something_is_a_warning(judged):
    """With what it says of itself."""
    found, _ = judged(OTHER.model_copy(update={"problem": "it lacks dask-cuda."}), SAME)
    assert (found.severity, "lacks dask-cuda" in found.what) == (Severity.WARNING, True)


def test_a_manager_that_tells_no_environments_is_a_note(status):
    """As one of an earlier release does not."""
    (found,) = judge_environments(PoolView(status=status()), HERE)
    assert found.severity is Severity.NOTE
