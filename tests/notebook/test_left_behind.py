"""Claims that a kernel has left behind: told when that is certain, and never otherwise."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.background import Say
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.client.this_host import ThisHost
from jupyter_gpupool.notebook.left_behind import first_look, left_behind, left_behind_text
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.using import KernelView

HERE = ThisHost(mark="here", boot_id="this-boot", uid=os.getuid())
ALIVE, GONE = 7, 8
View = Callable[..., ClaimView]


def started(pid: int) -> int | None:
    return 100 if pid == ALIVE else None


def a_kernel(**changes: Any) -> KernelView:
    said = {"id": "k", "name": "", "host": "here", "boot_id": "this-boot", "pid": GONE}
    more = {"started": 100, "attached_at": "2026-11-30T12:00:00Z"}
    return KernelView.model_validate({**said, **more, **changes})


@pytest.mark.parametrize(
    "change",
    [{}, {"pid": ALIVE, "started": 99}, {"pid": ALIVE, "boot_id": "earlier"}],
    ids=["its process is gone", "its pid is another's", "the host was booted since"],
)
def test_claim_of_a_kernel_that_is_gone_is_left_behind(
    a_view: View, change: dict[str, Any]
) -> None:
    """Whatever proves that it is gone."""
    view = a_view(kernels=[a_kernel(**change)])
    assert left_behind([view], HERE, started) == [view]


def test_kernel_that_was_seen_to_die_is_gone_wherever_it_was(a_view: View) -> None:
    """A Jupyter server said so."""
    view = a_view(kernels=[a_kernel(host="elsewhere", state="dead")])
    assert left_behind([view], HERE, started) == [view]


@pytest.mark.parametrize(
    "kernels",
    [
        [],
        [a_kernel(pid=ALIVE)],
        [a_kernel(host="elsewhere")],
        [a_kernel(), a_kernel(id="other", pid=ALIVE)],
        [a_kernel(), a_kernel(id="other", host="elsewhere")],
    ],
    ids=["none", "alive", "unknown", "another one alive", "another one unknown"],
)
def test_what_may_live_is_not_left_behind(a_view: View, kernels: list[KernelView]) -> None:
    """Nobody is told to take over a claim that is in use."""
    assert left_behind([a_view(kernels=kernels)], HERE, started) == []


def test_claim_that_is_over_is_not_told(a_view: View) -> None:
    """There is nothing to take over."""
    assert left_behind([a_view(phase="ended", kernels=[a_kernel()])], HERE, started) == []


def test_line_says_what_to_do(a_view: View, a_lease: Callable[..., object]) -> None:
    """In words that can be run."""
    view = a_view(name='say "x"', leases=[a_lease("gpu-1"), a_lease("gpu-1")])
    (line,) = left_behind_text([view])
    assert line.startswith('Claim say "x" (2 × A100) was left behind by a kernel that has ended:')
    assert line.endswith(r'attach("say \"x\"") takes it over, release("say \"x\"") gives it back.')


def test_claims_of_one_name_are_called_by_id(a_view: View) -> None:
    """A name that two share would be refused."""
    lines = left_behind_text([a_view(id="c-1", name="same"), a_view(id="c-2", name="same")])
    assert 'attach("c-1")' in lines[0]
    assert 'release("c-2")' in lines[1]


def test_each_pool_is_looked_at_once() -> None:
    """Whoever uses two of them hears of what was left behind in both."""
    urls = ("http://127.0.0.1:8", "http://127.0.0.1:9")
    one, two = (Pool(PoolAddress(url=url, token="gpt_x")) for url in urls)

    async def look(_say: Say) -> list[bool]:
        looks = [first_look(pool) for pool in (one, two, one, two)]
        for begun in looks:
            if begun is not None:
                begun.cancel()
        return [begun is not None for begun in looks]

    assert one.background.run(look) == [True, True, False, False]
