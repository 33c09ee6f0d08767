"""Real kernels, as Jupyter starts them, that use the notebook tests' pool."""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from jupyter_gpupool.client.pools import Pool

READY_WITHIN_S = 60
CELL_WITHIN_S = 60


@dataclass
class Output:
    """What a cell has shown so far."""

    out: str = ""
    err: str = ""
    error: str = ""
    shown: list[str] = field(default_factory=list)
    """Texts of displays, each update anew."""

    def take(self, kind: str, content: dict[str, Any]) -> None:
        if kind == "stream":
            name = "out" if content["name"] == "stdout" else "err"
            setattr(self, name, getattr(self, name) + content["text"])
        elif kind == "error":
            self.error = content["ename"]
        elif kind in ("display_data", "update_display_data", "execute_result"):
            self.shown.append(content["data"].get("text/plain", ""))


class Kernel:
    """One kernel and a notebook in front of it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        file = folder / f"kernel-{uuid.uuid4()}.json"
        self._manager = KernelManager(connection_file=str(file))
        self._manager.start_kernel(env=environment, cwd=str(folder))
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=READY_WITHIN_S)
        self.run("import jupyter_gpupool as gpupool")

    def run(self, code: str) -> Output:
        """Run a cell to its end."""
        return self.finish(self.begin(code))

    def begin(self, code: str) -> str:
        """Begin to run a cell; interrupts go to it."""
        return str(self._client.execute(code))

    def finish(
        self, cell: str, until: Callable[[Output], bool] | None = None, output: Output | None = None
    ) -> Output:
        """What a cell has shown when it ends, or when this is so."""
        output, deadline = output or Output(), time.monotonic() + CELL_WITHIN_S
        while until is None or not until(output):
            try:
                message = self._client.get_iopub_msg(timeout=deadline - time.monotonic())
            except (Empty, ValueError):
                pytest.fail(f"the cell is not done after {CELL_WITHIN_S} s: {output}")
            if message["parent_header"].get("msg_id") != cell:
                continue
            content = message["content"]
            if content.get("execution_state") == "idle":
                break
            output.take(message["msg_type"], content)
        return output

    def interrupt(self) -> None:
        """As the square button does."""
        self._manager.interrupt_kernel()

    def restart(self) -> None:
        """As Jupyter does it: the kernel is asked to end, and told that it comes back."""
        self._manager.restart_kernel()
        self._client.wait_for_ready(timeout=READY_WITHIN_S)
        self.run("import jupyter_gpupool as gpupool")

    def kill(self) -> None:
        """As the out-of-memory killer does it."""
        self._manager.shutdown_kernel(now=True)

    def stop(self) -> None:
        """As Jupyter does it when a notebook is shut down."""
        self._manager.shutdown_kernel()

    def close(self) -> None:
        self._client.stop_channels()
        if self._manager.has_kernel:
            self.kill()
        self._manager.cleanup_resources()


@pytest.fixture
def start_kernel(
    tmp_path: Path, script_environment: dict[str, str], pool: Pool
) -> Iterator[Callable[..., Kernel]]:
    """Start a kernel that uses the pool, in a notebook of this path; no claim outlives the test."""
    started: list[Kernel] = []

    def start(notebook: str = "") -> Kernel:
        kernel = Kernel(tmp_path, {**script_environment, "JPY_SESSION_NAME": notebook})
        started.append(kernel)
        return kernel

    yield start
    for kernel in started:
        kernel.close()
    pool.background.run(lambda _say: pool.client.release_all())


@pytest.fixture
def kernel(start_kernel: Callable[..., Kernel]) -> Kernel:
    """One kernel that uses the pool."""
    return start_kernel()
