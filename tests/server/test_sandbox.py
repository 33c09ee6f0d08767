"""A dashboard in a real browser: it works, and can do nothing to Jupyter."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

pytestmark = pytest.mark.e2e
_WITHIN_MS = 60_000
_FLAGS = ("--no-sandbox", "--disable-background-networking")
_TRY = """async (url) => {
    const refused = () => "refused";
    const cookie = (() => { try { return document.cookie } catch { return "refused" } })();
    return [cookie, await fetch(url, {credentials: "include"}).then(r => r.status, refused)];
}"""


@pytest.fixture
def page(server: Any, login: dict[str, str]) -> Iterator[Page]:
    """A page of somebody who is logged in, by cookie."""
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("there is no chromium here")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page()
        page.set_default_timeout(_WITHIN_MS)
        page.goto(f"{server.url}api/status?token={login['Authorization'].split()[1]}")
        yield page
        browser.close()


def test_a_dashboard_draws_and_is_locked_in(
    server: Any, page: Page, running_claim: dict[str, Any]
) -> None:
    """Bokeh gets its first picture through its socket; Jupyter's cookie and files stay out."""
    page.goto(f"{server.url}gpupool/dashboards/{running_claim['id']}/workers")
    page.locator("canvas").first.wait_for()
    assert page.evaluate("self.origin") == "null"
    assert page.evaluate(_TRY, f"{server.url}api/contents") == ["refused", "refused"]
