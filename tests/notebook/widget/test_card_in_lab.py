"""The card where it is meant to be: a notebook in a real JupyterLab, with a real kernel."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupyter_gpupool.client.pools import Pool

pytest.importorskip("jupyterlab", reason="needs jupyterlab")
pytest.importorskip("anywidget", reason="needs anywidget")
nbformat = pytest.importorskip("nbformat", reason="needs nbformat")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e
WITHIN_S = 60.0
CELLS = (
    "import jupyter_gpupool as gpupool\ncluster = gpupool.claim(1, name='shown', quiet=True)",
    "cluster",
    "cluster",
)
_SESSION = "jupyterapp.shell.currentWidget?.sessionContext"
_READY = (
    f"window.jupyterapp && {_SESSION}?.isReady && {_SESSION}.session?.kernel?.status === 'idle'"
)


@pytest.fixture(scope="module")
def notebook_url(tmp_path_factory: pytest.TempPathFactory, pool: Pool) -> Iterator[str]:
    """Where a JupyterLab of these tests' own shows a notebook with two cards."""
    folder = tmp_path_factory.mktemp("notebooks")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=spec), folder / "cards.ipynb")
    port = _free_port()
    base = f"http://127.0.0.1:{port}/lab-of-mine/"
    lab = subprocess.Popen(
        _command(port, folder),
        env=_environment(pool, tmp_path_factory.mktemp("jupyter")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until_answered(f"{base}api?token=t")
        yield f"{base}lab/tree/cards.ipynb?token=t&reset"
    finally:
        lab.terminate()
        lab.wait(WITHIN_S)
        pool.background.run(lambda _say: _give_back(pool))


@pytest.fixture
def page(browser: "Browser", notebook_url: str) -> Iterator["Page"]:
    """The notebook, run."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(WITHIN_S * 1000)
    page.goto(notebook_url)
    page.wait_for_function(_READY)
    page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")
    page.locator("[data-state='running'] >> nth=1").wait_for()
    yield page
    page.close()


def test_cards_of_a_notebook_are_live_until_its_kernel_goes(page: "Page"):
    """Two copies in step, a button that works, a link to the server, and an honest end."""
    link = page.get_by_role("link", name="Dashboards").first
    assert "/lab-of-mine/gpupool/dashboards/c-" in str(link.get_attribute("href"))
    page.locator("[data-key='more']").first.click()
    page.locator(".gp-Card tr >> nth=3").wait_for()
    page.evaluate(f"() => {{ {_SESSION}.session.kernel.restart() }}")
    page.get_by_text("The kernel is gone").nth(1).wait_for()
    assert page.locator(".gp-Card button").count() == 0


def test_card_of_a_kernel_that_was_shut_down_looks_not_live(page: "Page"):
    """Without a word of the kernel's."""
    page.evaluate(f"() => {{ {_SESSION}.shutdown() }}")
    page.get_by_text("The kernel is gone").nth(1).wait_for()


async def _give_back(pool: Pool) -> None:
    """What kernels that were ended in the middle of things have left."""
    for view in await pool.client.claims():
        if view.name == "shown":
            await pool.client.release(view.id)


def _command(port: int, folder: Path) -> list[str]:
    options = {
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.base_url": "/lab-of-mine/",
        "ServerApp.root_dir": folder,
        "IdentityProvider.token": "t",
        "LabApp.expose_app_in_browser": True,
    }
    given = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", *given]


def _environment(pool: Pool, folder: Path) -> dict[str, str]:
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR")
    own = {name: str(folder / name.lower()) for name in names}
    reached = {"GPUPOOL_URL": pool.address.url, "GPUPOOL_TOKEN": pool.address.token}
    return {**os.environ, **own, **reached}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _until_answered(url: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            urllib.request.urlopen(url).close()
        except OSError:
            assert time.monotonic() < deadline, f"no answer within {WITHIN_S} s"
            time.sleep(0.1)
        else:
            return
