"""Executed notebooks: kernels that share a claim, restart, die, and what each is told."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_harness.notebook import Notebook

from jupyter_gpupool.client.embedded import EmbeddedPool

MakeNotebook = Callable[[], Notebook]
CLAIM = """
import jupyter_gpupool as gpupool
from distributed import Client
cluster = gpupool.claim(1, name={name!r})
client = Client(cluster)
print(client.submit(sum, [1, 2]).result())
"""


@pytest.fixture(scope="module")
def environment(folders: Callable[[], Path]) -> Iterator[dict[str, str]]:
    """The environment of kernels that use a pool of two simulated devices."""
    folder = folders()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUPOOL_")}
    with EmbeddedPool(folder, options=("--simulated=2",)) as pool:
        assert pool.address is not None
        yield {
            **kept,
            "GPUPOOL_URL": pool.address.url,
            "GPUPOOL_TOKEN": pool.address.token,
            "IPYTHONDIR": str(folder / "ipython"),
        }


@pytest.fixture
def notebook(environment: dict[str, str], tmp_path: Path) -> Iterator[MakeNotebook]:
    """Makes notebooks in one folder; whatever they claimed is given back."""
    opened: list[Notebook] = []

    def make() -> Notebook:
        opened.append(Notebook(tmp_path, environment).__enter__())
        return opened[-1]

    yield make
    with Notebook(tmp_path, environment) as last:
        last.run("%gpupool release --all")
    for one in opened:
        one.__exit__()


def test_two_notebooks_share_a_claim(notebook: MakeNotebook) -> None:
    """What one has computed the other sees, and closing the second leaves the claim."""
    first, second = notebook(), notebook()
    first.run(CLAIM.format(name="shared"))
    first.run("client.publish_dataset(answer=client.submit(lambda: 42))")
    second.run("import jupyter_gpupool as gpupool; from distributed import Client")
    second.run("mine = gpupool.attach('shared'); theirs = Client(mine)")
    assert second.run("print(theirs.get_dataset('answer').result())") == "42\n"
    second.run("theirs.close(); mine.close()")
    assert first.run("print(client.submit(sum, [3, 4]).result())") == "7\n"


def test_restarted_kernel_attaches_to_its_claim(notebook: MakeNotebook) -> None:
    """A claim whose `close` never ran is still there, with its results."""
    one = notebook()
    one.run("import jupyter_gpupool as gpupool; from distributed import Client")
    # Held on to: a cluster that is forgotten gives its claim back.
    one.run("mine = gpupool.claim(1, name='kept', wait=False)")
    one.run("cluster = gpupool.attach(mine.claim_id)")
    one.run("client = Client(cluster); client.publish_dataset(answer=client.submit(lambda: 42))")
    one.kill()
    one.restart()
    one.run("import jupyter_gpupool as gpupool; from distributed import Client")
    one.run("client = Client(gpupool.attach('kept'))")
    assert one.run("print(client.get_dataset('answer').result())") == "42\n"


def test_claim_of_a_killed_kernel_is_told_of_at_the_next_use(notebook: MakeNotebook) -> None:
    """Nobody has to look for devices that a dead kernel still holds."""
    one = notebook()
    one.run(CLAIM.format(name="orphan"))
    one.kill()
    another = notebook()
    another.run("import jupyter_gpupool as gpupool")
    told = another.run("gpupool.claims()")
    assert "orphan" in told
    assert "left behind" in told


def test_kernel_of_another_python_is_refused_in_one_sentence(notebook: MakeNotebook) -> None:
    """Both versions and the way out; nothing has been claimed."""
    one = notebook()
    one.run("import jupyter_gpupool as gpupool")
    one.run("import platform; platform.python_version = lambda: '3.10.1'")
    with pytest.raises(AssertionError, match=r"This kernel has Python 3\.10\.1") as refusal:
        one.run("%gpupool claim 1 --name impossible")
    assert "Traceback" not in str(refusal.value)
    assert "impossible" not in one.run("print(gpupool.claims())")


def test_magics_are_there_without_being_loaded(notebook: MakeNotebook) -> None:
    """Installing the package is all it takes."""
    assert "devices on" in notebook().run("%gpupool status")
