"""An IPython shell in this process, with the magics and a real pool of simulated devices."""

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import jupyter_gpupool as gpupool
from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a cell left."""

    value: Any
    out: str
    err: str
    error: BaseException | None


class Notebook:
    """A notebook in this process."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def run(self, cell: str) -> Ran:
        """Run a cell as a user would."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            done = self.shell.run_cell(cell, store_history=False)
        error = done.error_before_exec or done.error_in_exec
        return Ran(value=done.result, out=out.getvalue(), err=err.getvalue(), error=error)

    def __getitem__(self, name: str) -> Any:
        """A variable."""
        return self.shell.user_ns[name]


@pytest.fixture(scope="session")
def shell() -> Iterator[InteractiveShell]:
    """The shell; a process has one."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    gpupool.load_ipython_extension(shell)
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def bare_notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    """A notebook that may have no pool."""
    yield Notebook(shell)
    shell.reset(new_session=False)


@pytest.fixture
def notebook(
    bare_notebook: Notebook, embedded: EmbeddedPool, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Notebook]:
    """A notebook with a pool, and with no claim left when it ends."""
    assert embedded.address is not None
    monkeypatch.setenv("GPUPOOL_URL", embedded.address.url)
    monkeypatch.setenv("GPUPOOL_TOKEN", embedded.address.token)
    yield bare_notebook
    bare_notebook.run("%gpupool release --all")


@pytest.fixture
def claimed(notebook: Notebook) -> Notebook:
    """A notebook that holds a claim of one worker, named "mine"."""
    ran = notebook.run("%gpupool claim 1 --name mine")
    assert ran.error is None, ran.err
    return notebook


@pytest.fixture
def completed(shell: InteractiveShell) -> Callable[[str], list[str]]:
    """What Tab offers at the end of a line."""

    def complete(line: str) -> list[str]:
        with provisionalcompleter():
            return [found.text for found in shell.Completer.completions(line, len(line))]

    return complete
