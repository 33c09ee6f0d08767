"""Claims and the kernels that use them: shared, kept over a restart, found after a death."""

from collections.abc import Callable
from typing import Any

import pytest
from waiting import eventually

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.protocol.api import ClaimView

pytestmark = pytest.mark.e2e
WITHIN_S = 20
OVER = (Phase.ENDING, Phase.ENDED)
COMPUTE = "print(cluster.get_client().submit(sum, [1, 2]).result())"
View = Callable[[str], ClaimView]
Start = Callable[..., Any]


@pytest.fixture
def the_claim(pool: Pool) -> Callable[[], str]:
    """The id of the only claim there is."""

    def find() -> str:
        views = pool.background.run(lambda _say: pool.client.claims())
        (claim_id,) = (view.id for view in views if view.phase not in OVER)
        return claim_id

    return find


def test_claim_knows_the_kernel_that_uses_it(
    start_kernel: Start, the_claim: Callable[[], str], view_of: View
) -> None:
    """By Jupyter's id of it, and the notebook's path."""
    start_kernel("/home/ada/train me.ipynb").run("cluster = gpupool.claim(1)")
    eventually(lambda: bool(view_of(the_claim()).kernels), WITHIN_S)
    (kernel,) = view_of(the_claim()).kernels
    assert kernel.name == "/home/ada/train me.ipynb"
    assert len(kernel.id) == len("00000000-0000-0000-0000-000000000000")


def test_restarted_kernel_attaches_to_its_claim(
    kernel: Any, the_claim: Callable[[], str], view_of: View
) -> None:
    """The restart keeps it; what was injected is had again by `attach()`."""
    kernel.run("cluster = gpupool.claim(1, name='kept')")
    claim_id = the_claim()
    eventually(lambda: bool(view_of(claim_id).kernels), WITHIN_S)
    kernel.restart()
    ran = kernel.run(f"cluster = gpupool.attach()\n{COMPUTE}")
    assert (ran.out, the_claim()) == ("3\n", claim_id)
    assert "left behind" not in ran.err


def test_kernel_that_is_shut_down_gives_its_claim_back(
    kernel: Any, the_claim: Callable[[], str], view_of: View
) -> None:
    """Nobody closed it."""
    kernel.run("cluster = gpupool.claim(1)")
    claim_id = the_claim()
    kernel.stop()
    eventually(lambda: view_of(claim_id).phase in OVER, WITHIN_S)


def test_claim_of_a_killed_kernel_is_told_and_taken_over(
    start_kernel: Start, the_claim: Callable[[], str], view_of: View
) -> None:
    """In one line, once, at the next first use."""
    first = start_kernel()
    first.run("cluster = gpupool.claim(1, name='orphan')")
    eventually(lambda: bool(view_of(the_claim()).kernels), WITHIN_S)
    first.kill()
    second = start_kernel()
    told = second.run("mine = gpupool.claim(1)").err
    assert told.count('left behind by a kernel that has ended: attach("orphan")') == 1
    assert "left behind" not in second.run("gpupool.claims()").err
    assert second.run(f"cluster = gpupool.attach('orphan')\n{COMPUTE}").out == "3\n"


def test_two_kernels_share_a_claim(
    start_kernel: Start, the_claim: Callable[[], str], view_of: View
) -> None:
    """Closing one's attachment leaves it; so does the end of the one that had asked for it."""
    first, second = start_kernel(), start_kernel()
    first.run("cluster = gpupool.claim(1)")
    claim_id = the_claim()
    assert second.run(f"cluster = gpupool.attach()\n{COMPUTE}").out == "3\n"
    eventually(lambda: len(view_of(claim_id).kernels) == 2, WITHIN_S)
    first.stop()
    assert second.run(COMPUTE).out == "3\n"
    second.run("cluster.close()")
    assert view_of(claim_id).phase is Phase.RUNNING
    eventually(lambda: len(view_of(claim_id).kernels) == 1, WITHIN_S)


def test_claim_can_be_awaited_in_a_cell(kernel: Any) -> None:
    """On the kernel's own loop, and blocking beside it without a deadlock."""
    cell = (
        "async with gpupool.claim(1, asynchronous=True) as one:\n"
        "    with gpupool.claim(1) as two:\n"
        "        print(len(one.requested), len(two.requested), two.explain().phase)\n"
    )
    assert kernel.run(cell).out == "1 1 running\n"
