"""What the pool is told of the kernels that use its claims."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def kernel_id(browser: httpx.Client) -> Iterator[str]:
    """A kernel of the Jupyter server."""
    made: str = browser.post("api/kernels", json={"name": "python3"}).json()["id"]
    yield made
    browser.delete(f"api/kernels/{made}")


@pytest.fixture
def kernel(kernel_id: str, runtime_folder: Path) -> Iterator[BlockingKernelClient]:
    """Its client, once it answers."""
    client = BlockingKernelClient(connection_file=str(runtime_folder / f"kernel-{kernel_id}.json"))
    client.load_connection_file()
    client.start_channels(hb=False)  # whose beat a busy machine misses
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()


@pytest.fixture
def state_is(
    browser: httpx.Client, running_claim: dict[str, Any], kernel_id: str
) -> Callable[[str], bool]:
    """Attach the kernel to a claim, and ask what the pool knows of it."""
    path = f"gpupool/api/v1/claims/{running_claim['id']}"
    body = {"host": "h", "boot_id": "b", "pid": 1, "started": 1, "name": "x.ipynb"}
    browser.put(f"{path}/kernels/{kernel_id}", json=body).raise_for_status()

    def look(state: str) -> bool:
        kernels = browser.get(path).json()["kernels"]
        return [kernel["state"] for kernel in kernels if kernel["id"] == kernel_id] == [state]

    return look


def test_the_pool_knows_whether_an_attached_kernel_is_busy(
    kernel: BlockingKernelClient, state_is: Callable[[str], bool]
) -> None:
    """While a cell runs, and when it has ended."""
    kernel.execute("wait = input()", allow_stdin=True)
    eventually(lambda: state_is("busy"), 60, "the kernel is busy")
    kernel.input("done")
    eventually(lambda: state_is("idle"), 60, "the kernel is idle")


def test_a_kernel_that_is_shut_down_is_told(
    kernel: BlockingKernelClient,
    kernel_id: str,
    browser: httpx.Client,
    state_is: Callable[[str], bool],
) -> None:
    """The claim that it used was left behind."""
    kernel.execute("1")
    eventually(lambda: state_is("idle"), 60, "the kernel is idle")
    browser.delete(f"api/kernels/{kernel_id}")
    eventually(lambda: state_is("dead"), 60, "the kernel is dead")
