"""Kernels whose Python is not the pool's: another patch release, or no Dask at all."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_harness.interpreters import of_another_patch_release, with_nothing_but
from e2e_harness.jupyter import jupyter_server

from jupyter_gpupool.client.embedded import EmbeddedPool

COMPUTE = """
import jupyter_gpupool as gpupool
from distributed import Client
with gpupool.claim(1, quiet=True) as cluster, Client(cluster) as client:
    print(client.submit(lambda x: x + 1, 41).result())
"""
WITHOUT_DASK = """
import importlib.util
import jupyter_gpupool as gpupool
assert importlib.util.find_spec("distributed") is None
print(gpupool.status().devices, len(gpupool.claims()), gpupool.environments()[0].name)
try:
    gpupool.claim(1)
except gpupool.PoolError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def environment(folders: Callable[[], Path]) -> Iterator[dict[str, str]]:
    """What a script of a pool with two simulated devices has to know."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUPOOL_")}
    with EmbeddedPool(folders(), options=("--simulated=2",)) as pool:
        assert pool.address is not None
        yield {**kept, "GPUPOOL_URL": pool.address.url, "GPUPOOL_TOKEN": pool.address.token}


def _output(interpreter: Path, code: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [interpreter, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernel_of_another_patch_release_computes(
    environment: dict[str, str], folders: Callable[[], Path]
) -> None:
    """Functions pickled by one patch release are read by another."""
    interpreter = of_another_patch_release(folders())
    if interpreter is None:
        pytest.skip("this machine has no second patch release of this Python")
    assert _output(interpreter, COMPUTE, environment) == "42\n"


def test_base_package_is_a_client_without_dask(
    environment: dict[str, str], folders: Callable[[], Path]
) -> None:
    """It sees the pool, and says in one sentence what a claim needs."""
    interpreter = with_nothing_but(folders(), "jupyter-gpupool")
    seen, refusal = _output(interpreter, WITHOUT_DASK, environment).splitlines()
    assert seen == "2 0 default"
    assert "needs the package distributed" in refusal


def test_server_of_the_base_package_forwards_to_the_pool(
    environment: dict[str, str], folders: Callable[[], Path]
) -> None:
    """A Jupyter server needs neither Dask nor the manager's libraries."""
    interpreter = with_nothing_but(folders(), "jupyter-gpupool", "jupyter-server")
    with jupyter_server(interpreter, folders(), environment) as browser:
        assert browser.get("/gpupool/api/v1/status").json()["devices"] == 2


def test_server_that_cannot_start_a_pool_says_what_to_install(
    environment: dict[str, str], folders: Callable[[], Path]
) -> None:
    """With no manager named, and without what a private pool is made of."""
    interpreter = with_nothing_but(folders(), "jupyter-gpupool", "jupyter-server")
    nobody = {name: text for name, text in environment.items() if not name.startswith("GPUPOOL_")}
    with jupyter_server(interpreter, folders(), nobody) as browser:
        answer = browser.get("/gpupool/api/v1/status")
    assert answer.status_code == 503
    assert "jupyter-gpupool[all]" in answer.json()["detail"] + answer.json()["hint"]
