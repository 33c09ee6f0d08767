"""The card in a real browser: a bare page with JupyterLab's variables, and a model in it."""

import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
