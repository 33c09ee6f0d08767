"""Faults that users of other cluster managers report, each with a test of its kind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from distributed import Client

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.api import ClaimView

pytestmark = pytest.mark.e2e
OVER = (Phase.ENDING, Phase.ENDED)
View = Callable[[str], ClaimView]
_FAILS = """
import gc; gc.disable()
import jupyter_gpupool as gpupool
cluster = gpupool.claim(1)
cluster.itself = cluster
print(cluster.claim_id, flush=True)
raise SystemExit("my own mistake")
"""
_FORKS = """
import os, sys
import jupyter_gpupool as gpupool
cluster = gpupool.claim(1)
client = cluster.get_client()
if not (child := os.fork()):
    sys.exit()
os.waitpid(child, 0)
print(client.submit(sum, [1, 2]).result())
"""
_SNIPPET = """
import jupyter_gpupool as gpupool
cluster = gpupool.attach("injected")
print(cluster.get_client().submit(sum, [1, 2]).result())
"""


def _run(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=90, check=False
    )


def test_cleanup_does_not_rely_on_the_garbage_collector(
    script_environment: dict[str, str], view_of: View
) -> None:
    """A cluster that is never collected is given back when its Python ends."""
    claim_id = _run(_FAILS, script_environment).stdout.strip()
    assert view_of(claim_id).phase in OVER


def test_forked_child_gives_nothing_back(script_environment: dict[str, str]) -> None:
    """Its end is not its parent's."""
    environment = {**script_environment, "PYTHONWARNINGS": "ignore"}
    done = _run(_FORKS, environment)
    assert done.stdout == "3\n", done.stderr


def test_close_says_so_until_the_claim_is_given_back(
    another_pool: tuple[EmbeddedPool, Pool],
) -> None:
    """A second close after a failed one tries again instead of reporting success."""
    embedded, pool = another_pool
    cluster = claim(1, pool=pool, quiet=True)
    assert embedded.address is not None
    manager = embedded.address.manager_pid or 0
    os.kill(manager, signal.SIGSTOP)
    try:
        for _ in range(2):
            with pytest.raises(Unavailable, match="may still run"):
                cluster.close()
    finally:
        os.kill(manager, signal.SIGCONT)
    cluster.close()
    assert pool.background.run(lambda _say: pool.client.claim(cluster.claim_id)).phase in OVER


def test_adapting_twice_leaves_one_word(pool: Pool, view_of: View) -> None:
    """The last bounds count, and no loop on this side fights for the first ones."""
    with claim(1, pool=pool) as cluster:
        cluster.adapt(minimum=0, maximum=3)
        cluster.adapt(minimum=1, maximum=2)
        bounds = view_of(cluster.claim_id).workers
        assert (bounds.min, bounds.max) == (1, 2)
        assert cluster._adaptive is None
        assert not cluster.periodic_callbacks


def test_adapting_goes_on_after_a_worker_is_lost(pool: Pool) -> None:
    """The pool brings it back, and further bounds are followed."""
    with claim(1, pool=pool) as cluster, Client(cluster) as client:
        cluster.adapt(minimum=1, maximum=2)
        cluster.wait_for_workers(2, timeout=60)
        before = client.run(os.getpid)
        os.kill(next(iter(before.values())), signal.SIGKILL)
        cluster.adapt(minimum=1, maximum=3)
        cluster.wait_for_workers(3, timeout=60)


def test_snippet_works_without_credentials_in_it(
    tmp_path: Path, pool: Pool, script_environment: dict[str, str]
) -> None:
    """What the sidebar inserts finds the pool and the claim's certificate by itself."""
    token = tmp_path / "token"
    token.write_text(script_environment["GPUPOOL_TOKEN"])
    token.chmod(0o600)
    environment = {**script_environment, "GPUPOOL_TOKEN_FILE": str(token)}
    del environment["GPUPOOL_TOKEN"]
    with claim(1, name="injected", pool=pool):
        assert _run(_SNIPPET, environment).stdout == "3\n"


def test_nothing_that_is_shown_holds_a_secret(
    pool: Pool, script_environment: dict[str, str]
) -> None:
    """A notebook is saved with its outputs."""
    with claim(1, pool=pool) as cluster, Client(cluster) as client:
        shown = [repr(cluster), cluster._repr_html_(), repr(client), repr(cluster.security)]
        for each in shown:
            assert script_environment["GPUPOOL_TOKEN"] not in each
            assert "PRIVATE KEY" not in each
