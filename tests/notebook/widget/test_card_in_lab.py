"""The card where it is meant to be: a notebook in a real JupyterLab, with a real kernel."""

from typing import TYPE_CHECKING

import pytest

from jupyter_gpupool.client.pools import Pool

pytest.importorskip("jupyterlab", reason="needs jupyterlab")
pytest.importorskip("anywidget", reason="needs anywidget")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from .conftest import Lab

pytestmark = pytest.mark.e2e
CELLS = (
    "import jupyter_gpupool as gpupool\ncluster = gpupool.claim(1, name='shown', quiet=True)",
    "cluster",
    "cluster",
)


@pytest.fixture(scope="module")
def lab(make_lab: "Callable[[], Lab]") -> "Lab":
    """A JupyterLab that these tests share."""
    lab = make_lab()
    lab.write("cards", *CELLS)
    return lab


@pytest.fixture
def page(browser: "Browser", lab: "Lab", pool: Pool) -> "Iterator[Page]":
    """The notebook, run."""
    page = lab.opened(browser, "cards")
    page.locator("[data-state='running'] >> nth=1").wait_for()
    yield page
    page.close()
    pool.background.run(lambda _say: pool.client.release_all())


def test_cards_of_a_notebook_are_live_until_its_kernel_goes(lab: "Lab", page: "Page"):
    """Two copies in step, a button that works, a link to the server, and an honest end."""
    link = page.get_by_role("link", name="Dashboards").first
    assert "/lab-of-mine/gpupool/dashboards/c-" in str(link.get_attribute("href"))
    page.locator("[data-key='more']").first.click()
    page.locator(".gp-Card tr >> nth=3").wait_for()
    lab.session(page, "session.kernel.restart()")
    page.get_by_text("The kernel is gone").nth(1).wait_for()
    assert page.locator(".gp-Card button").count() == 0


def test_card_of_a_kernel_that_was_shut_down_looks_not_live(lab: "Lab", page: "Page"):
    """Without a word of the kernel's."""
    lab.session(page, "shutdown()")
    page.get_by_text("The kernel is gone").nth(1).wait_for()
