"""A claim that its notebook forgets: the warning reaches the next cell, and is answered there."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_harness.notebook import Notebook
from waiting import eventually

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.protocol.policy_views import ApplyBody

POLICY = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "quick"
signals = ["tasks", "calls"]
warn = "0s"
after = "60s"
action = "hibernate"
orphan = { after = "never" }
keep_alive = { longest = "30min", per_day = "40min", reason = true }
"""


WARNED_WITHIN_S = 120
"""A manager that has just started judges nobody before it could hear of kernels."""


@pytest.fixture(scope="module")
def notebook(folders: Callable[[], Path]) -> Iterator[Notebook]:
    """A notebook of a pool whose rule on idle claims is as quick as a rule may be."""
    folder = folders()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUPOOL_")}
    with EmbeddedPool(folder, options=("--simulated=1",)) as pool:
        assert pool.address is not None
        _apply(Pool(pool.address))
        environment = {
            **kept,
            "GPUPOOL_URL": pool.address.url,
            "GPUPOOL_TOKEN": pool.address.token,
            "IPYTHONDIR": str(folder / "ipython"),
        }
        with Notebook(folder, environment) as opened:
            yield opened


def test_warning_stands_once_under_the_next_cell_and_is_answered(notebook: Notebook) -> None:
    """With what to do; a keep beyond the rule is refused, and one within it clears the warning."""
    notebook.run("%gpupool claim 1 --name forgotten")
    told = eventually(
        lambda: _warned(notebook),
        WARNED_WITHIN_S,
        "the warning stands under a cell",
        context=lambda: notebook.run("%gpupool explain"),
    )
    assert "been idle for" in told
    assert "results are kept" in told
    assert '%gpupool keep forgotten 30min --reason "…"' in told
    assert "been idle for" not in notebook.run("1 + 1")
    assert "Claim forgotten: Your" in notebook.run("%gpupool status")
    assert "been idle for" in notebook.run("%gpupool ls")
    assert "kept for 30 min at a time" in notebook.run_failing("%gpupool keep 1h --reason lunch")
    assert "asks why" in notebook.run_failing("%gpupool keep 30min")
    answered = notebook.run("%gpupool keep 30min --reason lunch")
    assert "It is kept until" in answered
    assert "been idle for" not in notebook.run("%gpupool status")
    notebook.run("%gpupool release forgotten")


def test_hibernated_claim_keeps_its_results_and_resumes_from_a_cell(notebook: Notebook) -> None:
    """The client stays connected, and what was computed is there again."""
    notebook.run("%gpupool claim 1 --name night")
    assert "3\n" in notebook.run("future = client.submit(sum, [1, 2]); print(future.result())")
    assert "hibernating" in notebook.run("%gpupool hibernate")
    look = "import jupyter_gpupool as gpupool; print(gpupool.claims()[0].phase)"
    eventually(lambda: "hibernated" in notebook.run(look), 20, "it hibernates")
    assert "Results are kept until" in notebook.run("%gpupool ls")
    # A device is free: it may have been granted in the same moment.
    told = notebook.run("%gpupool resume")
    assert any(phase in told for phase in ("resuming", "starting"))
    eventually(lambda: "running" in notebook.run(look), 20, "it runs again")
    assert "3\n" in notebook.run("print(future.result())")


def _apply(pool: Pool) -> None:
    pool.background.run(lambda _say: pool.client.policy.apply(ApplyBody(source=POLICY)))
    pool.background.run(lambda _say: pool.close())


def _warned(notebook: Notebook) -> str:
    shown = notebook.run("0")
    return shown if "forgotten" in shown else ""
