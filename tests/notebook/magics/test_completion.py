"""What Tab offers in a `%gpupool` line."""

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupyter_gpupool.client import embedded
from jupyter_gpupool.notebook.magics import names

if TYPE_CHECKING:
    from .conftest import Notebook

Completed = Callable[[str], list[str]]


@pytest.fixture(params=[True, False], ids=["jedi", "no jedi"], autouse=True)
def jedi(request: pytest.FixtureRequest, bare_notebook: "Notebook") -> None:
    """Completion must not depend on it."""
    bare_notebook.shell.Completer.use_jedi = request.param


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another test's pool told is forgotten."""
    monkeypatch.setattr(names, "_cache", names._Cache())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%gpupool cl", ["claim"]),
        ("%gpupool re", ["release", "resume"]),
        ("seen = %gpupool sta", ["status"]),
        ("    %gpupool sc", ["scale"]),
        ("%gpupool claim 2 --mod", ["--model"]),
        ("%gpupool keep 1h --", ["--help", "--reason"]),
        ("%%gpupool --o", ["--on", "--out"]),
        ("%gpupool attach --as a ", ["--help"]),
        ("%gpupool claim 2 nothing-fits", ["nothing-fits"]),
    ],
)
def test_verbs_and_options_are_offered(completed: Completed, line: str, offered: list[str]) -> None:
    """Those that fit, and nothing else."""
    assert completed(line) == offered


def test_loading_it_again_changes_nothing(bare_notebook: "Notebook", completed: Completed) -> None:
    """For a user whose own configuration names it as well."""
    assert bare_notebook.run("%reload_ext jupyter_gpupool").err == ""
    assert completed("%gpupool cl") == ["claim"]


@pytest.mark.e2e
def test_models_are_offered(notebook: "Notebook", completed: Completed) -> None:
    """Quoted, for they have blanks."""
    notebook.run("%gpupool status")
    assert completed("%gpupool claim --model Sim") == ["'Simulated GPU 16 GiB'"]


def test_no_pool_is_started(
    completed: Completed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where none runs, no name is known."""
    started: list[object] = []
    monkeypatch.setattr(embedded, "spawn", started.append)
    monkeypatch.delenv("GPUPOOL_URL", raising=False)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    assert not any("Simulated" in offered for offered in completed("%gpupool claim --model "))
    assert started == []


def test_silent_pool_is_not_waited_for(
    completed: Completed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever types goes on typing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("GPUPOOL_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("GPUPOOL_TOKEN", "none")
        began = time.monotonic()
        completed("%gpupool claim --model ")
        assert time.monotonic() - began < 1
