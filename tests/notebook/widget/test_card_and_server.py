"""A live card whose Jupyter server is stopped, or killed and started again."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from waiting import eventually

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.protocol.api import ClaimView

pytest.importorskip("jupyterlab", reason="needs jupyterlab")
pytest.importorskip("anywidget", reason="needs anywidget")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from .conftest import Lab

pytestmark = pytest.mark.e2e
WITHIN_S = 30.0
CLAIMED = (
    "import jupyter_gpupool as gpupool\ncluster = gpupool.claim(1, name='lasting', quiet=True)"
)
ATTACHED = "import jupyter_gpupool as gpupool\ncluster = gpupool.attach('lasting')"


@pytest.fixture
def lab(make_lab: "Callable[[], Lab]", pool: Pool) -> "Iterator[Lab]":
    """A JupyterLab of the test's own, with a notebook that claims and one that attaches."""
    lab = make_lab()
    lab.write("claims", CLAIMED, "cluster")
    lab.write("attaches", ATTACHED, "cluster")
    yield lab
    pool.background.run(lambda _say: pool.client.release_all())


@pytest.fixture
def claim(pool: Pool) -> Callable[[], ClaimView]:
    """The claim as the manager sees it now."""
    return lambda: pool.background.run(lambda _say: pool.client.find_claim("lasting"))


def test_card_is_live_again_when_its_stopped_server_goes_on(
    browser: "Browser", lab: "Lab", pool: Pool, claim: Callable[[], ClaimView]
) -> None:
    """What happened to the claim meanwhile is on it, without a new page or cell."""
    page, claim_id = _shown(browser, lab, "claims"), claim().id
    lab.send(signal.SIGSTOP)
    pool.background.run(lambda _say: pool.client.scale(claim_id, 1, 2))
    eventually(lambda: _running(claim()) == 2, WITHIN_S, "the claim grows without the server")
    assert _lives(claim().kernels[0].pid)
    assert page.locator(".gp-Card tr").count() == 1
    lab.send(signal.SIGCONT)
    page.locator(".gp-Card tr >> nth=1").wait_for()
    _press_more(page, rows=3)
    page.close()


def test_claim_outlives_its_killed_server_and_its_card_comes_back(
    browser: "Browser", lab: "Lab", claim: Callable[[], ClaimView]
) -> None:
    """The kernel goes with its server; the claim does not, and the next kernel shows it live."""
    page = _shown(browser, lab, "claims")
    before = claim()
    lab.send(signal.SIGKILL)
    pid = before.kernels[0].pid
    eventually(lambda: not _lives(pid), WITHIN_S, "the kernel notices that its server is gone")
    lab.start()
    page.get_by_text("The kernel is gone").wait_for()
    page.close()
    after = claim()
    assert (after.id, after.phase, after.leases) == (before.id, "running", before.leases)
    again = _shown(browser, lab, "attaches")
    _press_more(again, rows=2)
    eventually(lambda: _running(claim()) == 2, WITHIN_S, "the button of the card reaches the claim")
    again.close()


def _shown(browser: "Browser", lab: "Lab", name: str) -> "Page":
    page = lab.opened(browser, name)
    page.locator("[data-state='running']").wait_for()
    return page


def _press_more(page: "Page", rows: int) -> None:
    page.locator("[data-key='more']").click()
    page.locator(f".gp-Card tr >> nth={rows - 1}").wait_for()


def _running(view: ClaimView) -> int:
    return sum(lease.phase == "running" for lease in view.leases)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
