"""Waiting and closing in a cell: shown as it goes on, and interrupted cleanly."""

from collections.abc import Callable
from typing import Any

import pytest

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.protocol.api import ClaimView

pytestmark = pytest.mark.e2e
TOO_MANY = 60
OVER = (Phase.ENDING, Phase.ENDED)


def test_wait_is_shown_in_one_output_and_interrupted_once(kernel: Any, pool: Pool) -> None:
    """The claim is given up, and nothing but the interrupt is told."""
    cell = kernel.begin(f"gpupool.claim({TOO_MANY}, name='interrupted')")
    waits = kernel.finish(cell, until=lambda output: bool(output.shown))
    said = "Claim interrupted waits: Not possible as the pool is: 60 devices"
    assert waits.shown[0].startswith(said)
    kernel.interrupt()
    ended = kernel.finish(cell, output=waits)
    assert (ended.error, ended.err) == ("KeyboardInterrupt", "")
    assert "interrupted" not in _waiting(pool)


def test_wait_that_is_over_says_so_in_the_same_output(kernel: Any, pool: Pool) -> None:
    """The last word on it is not that it waits."""
    kernel.run("held = gpupool.claim(8)")
    cell = kernel.begin("with gpupool.claim(1, name='next'): pass")
    waits = kernel.finish(cell, until=lambda output: bool(output.shown))
    (held,) = (view for view in _all(pool) if view.phase is Phase.RUNNING)
    pool.background.run(lambda _say: pool.client.release(held.id))
    assert kernel.finish(cell, output=waits).shown[-1] == "Claim next runs."


_INTERRUPTED_CLOSE = """
import _thread, threading
cluster = gpupool.claim(1, name="closed")
client = cluster.get_client()
hang_up = cluster._hang_up
async def slow():
    _thread.interrupt_main()
    await __import__("asyncio").sleep(30)
cluster._hang_up = slow
cluster.close()
"""


def test_interrupted_close_still_gives_back(
    kernel: Any, pool: Pool, view_of: Callable[[str], ClaimView]
) -> None:
    """The devices are worth one more moment."""
    assert kernel.run(_INTERRUPTED_CLOSE).error == "KeyboardInterrupt"
    assert not [view for view in _all(pool) if view.name == "closed" and view.phase not in OVER]


def _all(pool: Pool) -> list[ClaimView]:
    return list(pool.background.run(lambda _say: pool.client.claims()))


def _waiting(pool: Pool) -> set[str]:
    return {view.name for view in _all(pool) if view.phase is Phase.PENDING}
