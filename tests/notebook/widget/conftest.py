"""The card in a real browser: a bare page with JupyterLab's variables, or a real JupyterLab."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from waiting import eventually

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook import widget
from jupyter_gpupool.notebook.widget.card_model import Snapshot, cards_in_json
from jupyter_gpupool.protocol.api import ClaimView

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_HERE = Path(__file__).parent
_STATIC = Path(widget.__file__).parent / "static"
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
NOW = datetime.fromisoformat("2026-11-30T14:16:20+00:00")
Mount = Callable[..., "Page"]
WITHIN_S = 60.0
_SESSION = "jupyterapp.shell.currentWidget?.sessionContext"
_READY = (
    f"window.jupyterapp && {_SESSION}?.isReady && {_SESSION}.session?.kernel?.status === 'idle'"
)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium of this machine, for a module without asynchronous tests: it runs a loop itself."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=list(_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def mount(browser: "Browser") -> Iterator[Mount]:
    """Show a claim's card on a page of its own; it is 14:16:20, in UTC."""
    pages: list[Page] = []

    def mount(view: ClaimView, *, width: int = 740, language: str = "en", **more: Any) -> "Page":
        page = browser.new_page(viewport={"width": width, "height": 600}, timezone_id="UTC", **more)
        pages.append(page)
        page.clock.install(time=NOW)
        page.goto((_HERE / "page.html").as_uri())
        page.evaluate("language => { document.documentElement.lang = language }", language)
        script, style = ((_STATIC / name).read_text("utf8") for name in ("card.js", "card.css"))
        page.evaluate("given => mount(...given)", [script, style, cards_of(view)])
        return page

    yield mount
    for page in pages:
        page.close()


def cards_of(view: ClaimView, **snapshot: Any) -> dict[str, Any]:
    """What the widget pushes for a claim."""
    return cards_in_json(Snapshot(**{"view": view, "devices": {}, "at": NOW, **snapshot}), NOW)


@pytest.fixture
def push() -> Callable[..., None]:
    """Have the kernel tell a page of the claim anew."""

    def push(page: "Page", view: ClaimView, **snapshot: Any) -> None:
        page.evaluate("cards => model.push('cards', cards)", cards_of(view, **snapshot))

    return push


class Lab:
    """A JupyterLab with folders of its own, to be ended and started again at its port."""

    def __init__(self, folder: Path, pool: Pool) -> None:
        self.folder = folder
        self._pool = pool
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self._base = f"http://127.0.0.1:{self._port}/lab-of-mine/"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Lab":
        """Start it and wait until it answers."""
        self._process = subprocess.Popen(
            self._command(),
            env=self._environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(self._answers, WITHIN_S, "Lab answers")
        return self

    def send(self, number: signal.Signals) -> None:
        """Signal the server, and nothing that it has started."""
        assert self._process is not None
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            self._process.wait(WITHIN_S)

    def end(self) -> None:
        """End it as its user would."""
        assert self._process is not None
        # Should a test have failed while it was stopped.
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        self._process.wait(WITHIN_S)

    def write(self, name: str, *cells: str) -> None:
        """Write a notebook into its folder."""
        nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
        spec = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        made = [nbformat.v4.new_code_cell(source) for source in cells]
        notebook = nbformat.v4.new_notebook(cells=made, metadata=spec)
        nbformat.write(notebook, self.folder / f"{name}.ipynb")

    def opened(self, browser: "Browser", name: str) -> "Page":
        """A page with this notebook, all of whose cells are run."""
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(WITHIN_S * 1000)
        page.goto(f"{self._base}lab/tree/{name}.ipynb?token=t&reset")
        page.wait_for_function(_READY)
        page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")
        return page

    @staticmethod
    def session(page: "Page", act: str) -> None:
        """Do something with the session of a page's notebook."""
        page.evaluate(f"() => {{ {_SESSION}.{act} }}")

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self._base}api?token=t", timeout=5).close()
        except OSError:
            return False
        return True

    def _command(self) -> list[str]:
        options = {
            "ServerApp.port": self._port,
            "ServerApp.port_retries": 0,
            "ServerApp.base_url": "/lab-of-mine/",
            "ServerApp.root_dir": self.folder,
            "IdentityProvider.token": "t",
            "LabApp.expose_app_in_browser": True,
        }
        given = [f"--{name}={value}" for name, value in options.items()]
        return [sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", *given]

    def _environment(self) -> dict[str, str]:
        names = ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR")
        own = {name: str(self.folder / name.lower()) for name in names}
        reached = {"GPUPOOL_URL": self._pool.address.url, "GPUPOOL_TOKEN": self._pool.address.token}
        return {**os.environ, **own, **reached}


@pytest.fixture(scope="module")
def make_lab(tmp_path_factory: pytest.TempPathFactory, pool: Pool) -> Iterator[Callable[[], Lab]]:
    """Starts JupyterLabs; each is ended with the module."""
    started: list[Lab] = []

    def make() -> Lab:
        started.append(Lab(tmp_path_factory.mktemp("lab"), pool).start())
        return started[-1]

    yield make
    for lab in started:
        lab.end()
    pool.background.run(lambda _say: pool.client.release_all())
