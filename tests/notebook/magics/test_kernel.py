"""The magics in a real kernel, loaded as an installed package loads them."""

import json
import os
import shutil
import site
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[3]
USERS_OWN = """
c = get_config()
c.InteractiveShellApp.extensions = ["own_extension"]
c.InteractiveShellApp.exec_lines = ["own_line = True"]
"""
_OUTPUT = ("stream", "display_data", "update_display_data")
OWN_EXTENSION = "def load_ipython_extension(shell): shell.user_ns['own_extension'] = True"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a cell showed: messages of a kind, in order."""

    messages: list[dict[str, Any]]

    def text(self, kind: str, key: str) -> str:
        """What messages of this kind say, one after the other."""
        found = (m["content"] for m in self.messages if m["msg_type"] == kind)
        return "".join(str(content[key]) for content in found)


class Kernel:
    """A kernel, and a client of it."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str) -> Shown:
        """Run a cell to its end."""
        return self.shown_by(self.client.execute(code))

    def shown_by(self, request: str, until: str = "") -> Shown:
        """What a cell shows until it ends, or has shown this."""
        messages: list[dict[str, Any]] = []
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != request:
                continue
            messages.append(message)
            shown = Shown(messages=messages)
            if message["content"].get("execution_state") == "idle":
                return shown
            if until and message["msg_type"] in _OUTPUT and until in str(message["content"]):
                return shown

    def interrupted(self, code: str, begun: str) -> tuple[Shown, float]:
        """Interrupt a cell once it has printed this; what it showed then, and after how long."""
        request = self.client.execute(code)
        self.shown_by(request, until=begun)
        began = time.monotonic()
        self.manager.interrupt_kernel()
        return self.shown_by(request), time.monotonic() - began


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python installation with our configuration in its place, and a kernel of its own."""
    folder = tmp_path_factory.mktemp("prefix")
    venv.create(folder, symlinks=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    outer = (f"import site; site.addsitedir({path!r})" for path in site.getsitepackages())
    (packages / "outer.pth").write_text("\n".join(outer))
    shutil.copytree(ROOT / "etc" / "ipython", folder / "etc" / "ipython")
    python = str(folder / "bin" / "python")
    spec = {"argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    (folder / "kernels" / "there").mkdir(parents=True)
    (folder / "kernels" / "there" / "kernel.json").write_text(json.dumps(spec))
    return folder


@pytest.fixture(scope="module")
def users_ipython(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a user who has an extension of their own."""
    home = tmp_path_factory.mktemp("ipython")
    (home / "profile_default").mkdir()
    (home / "profile_default" / "ipython_config.py").write_text(USERS_OWN)
    (home / "extensions").mkdir()
    (home / "extensions" / "own_extension.py").write_text(OWN_EXTENSION)
    return home


@pytest.fixture(scope="module")
def kernel(
    prefix: Path, users_ipython: Path, embedded: EmbeddedPool, pool: Pool
) -> Iterator[Kernel]:
    """A kernel of that user, in that installation."""
    assert embedded.address is not None
    env = os.environ | {
        "GPUPOOL_URL": embedded.address.url,
        "GPUPOOL_TOKEN": embedded.address.token,
        "IPYTHONDIR": str(users_ipython),
        "PYTHONPATH": str(users_ipython / "extensions"),
    }
    specs = KernelSpecManager(kernel_dirs=[str(prefix / "kernels")])
    manager = KernelManager(kernel_name="there", kernel_spec_manager=specs)
    manager.start_kernel(env=env)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield Kernel(manager, client)
    client.stop_channels()
    manager.shutdown_kernel(now=False)
    manager.cleanup_resources()
    # A claim outlives its kernel, and others in this process want all devices.
    pool.background.run(lambda _say: pool.client.release_all())


def test_magics_are_there_beside_the_users_own(kernel: Kernel) -> None:
    """The user's extensions and lines are loaded as before."""
    code = (
        "print(own_line, own_extension, 'gpupool' in get_ipython().magics_manager.magics['cell'])"
    )
    assert kernel.run(code).text("stream", "text") == "True True True\n"


def test_start_loads_nothing_that_costs_time(kernel: Kernel) -> None:
    """Neither HTTP nor pydantic, Dask or the command's parser."""
    code = "import sys; print({'httpx', 'pydantic', 'distributed', 'click'} & set(sys.modules))"
    assert kernel.run(code).text("stream", "text") == "set()\n"


def test_completion_is_offered(kernel: Kernel) -> None:
    """With the place it stands at."""
    reply = kernel.client.complete("x = 1\n%gpupool cl", reply=True, timeout=60)
    offered = reply["content"]
    assert (offered["matches"], offered["cursor_start"]) == (["claim"], 15)


def test_claim_shows_a_card(kernel: Kernel) -> None:
    """In a kernel, too."""
    shown = kernel.run("%gpupool claim 1 --name there\n1")
    assert "Claim there has 1 worker" in shown.text("stream", "text")
    assert "text/html" in shown.text("display_data", "data")


def test_table_is_text_as_well(kernel: Kernel) -> None:
    """Printed it shows nothing beside itself, and nothing that only a terminal understands."""
    shown = kernel.run("import jupyter_gpupool\nprint(jupyter_gpupool.claims())")
    assert shown.text("display_data", "data") == ""
    assert shown.text("stream", "text").split()[:2] == ["NAME", "STATE"]


def test_output_is_shown_while_the_cell_runs(kernel: Kernel) -> None:
    """And its value as a result."""
    code = "%%gpupool\nimport time\nprint('first')\ntime.sleep(600)"
    shown, _ = kernel.interrupted(code, begun="first")
    assert shown.text("error", "ename") == "KeyboardInterrupt"
    shown = kernel.run("%%gpupool\nprint('second')\n6 * 7")
    assert shown.text("stream", "text") == "second\n"
    assert "'42'" in shown.text("execute_result", "data")


@pytest.mark.parametrize("wait", ["time.sleep(600)", "while True: pass"])
def test_interrupt_stops_the_remote_cell(kernel: Kernel, wait: str) -> None:
    """Within a second, once, and the worker goes on with its variables."""
    kernel.run("%%gpupool\nimport time\nkept = 5")
    shown, took_s = kernel.interrupted(f"%%gpupool\nprint('begun')\n{wait}", begun="begun")
    assert took_s < 1
    assert shown.text("error", "ename") == "KeyboardInterrupt"
    assert wait in shown.text("error", "traceback")
    assert "'5'" in kernel.run("%%gpupool\nkept").text("execute_result", "data")


def test_second_interrupt_restarts_the_worker(kernel: Kernel) -> None:
    """For a cell within a call that cannot be interrupted."""
    code = "%%gpupool\nimport threading\nprint('begun')\nthreading.Event().wait()"
    request = kernel.client.execute(code)
    kernel.shown_by(request, until="begun")
    kernel.manager.interrupt_kernel()
    kernel.shown_by(request, until="interrupt again to restart it")
    began = time.monotonic()
    kernel.manager.interrupt_kernel()
    shown = kernel.shown_by(request)
    assert time.monotonic() - began < 1
    assert shown.text("error", "ename") == "KeyboardInterrupt"
    assert "'1'" in kernel.run("%%gpupool\n1").text("execute_result", "data")


def test_mistake_is_no_traceback(kernel: Kernel) -> None:
    """One line, and the cell has failed."""
    shown = kernel.run("%gpupool clam")
    assert shown.text("stream", "text").startswith("UsageError: No such command 'clam'.")
    assert shown.text("error", "ename") == ""


def test_interrupt_while_a_claim_waits_gives_it_up(kernel: Kernel) -> None:
    """KeyboardInterrupt once, and the claim is gone."""
    shown, _ = kernel.interrupted("%gpupool claim 60 --name toomany", begun="toomany")
    assert shown.text("error", "ename") == "KeyboardInterrupt"
    assert "toomany" not in kernel.run("%gpupool ls").text("display_data", "data")


def test_restarted_kernel_finds_its_variables_on_the_worker(kernel: Kernel) -> None:
    """The claim lives on, and so does what its cells left there."""
    kernel.run("%%gpupool\nkept = 6")
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=60)
    kernel.run("%gpupool attach there")
    assert "'6'" in kernel.run("%%gpupool\nkept").text("execute_result", "data")
