"""Which process uses a claim, as the pool is told it."""

import os
import subprocess
import sys

from jupyter_gpupool.client.this_host import ThisHost, started_at
from jupyter_gpupool.notebook.this_kernel import is_kernel, is_restarting, this_kernel

_FORKED = """
import os
from jupyter_gpupool.notebook.this_kernel import this_kernel
parent = this_kernel()
if not (child := os.fork()):
    os._exit(this_kernel().id == parent.id)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
_NAMED = """
from jupyter_gpupool.notebook.this_kernel import this_kernel
body = this_kernel().body()
print(len(body.name), body.name.endswith("train.ipynb"), body.name.isprintable())
"""


def test_script_is_known_by_its_process() -> None:
    """Number and start together are no other's."""
    kernel = this_kernel()
    assert kernel.id == f"pid-{os.getpid()}-{started_at(os.getpid())}"
    assert kernel.host == ThisHost.read()
    assert kernel.body().pid == os.getpid()


def test_script_is_no_kernel() -> None:
    """So it does not come back either."""
    assert not is_kernel()
    assert not is_restarting()


def test_forked_child_is_another_process() -> None:
    """What was known of the parent is not remembered."""
    assert _run(_FORKED) == "0"


def test_any_path_of_a_notebook_can_be_sent() -> None:
    """However long, and whatever bytes are in it; its end is what people know it by."""
    path = b"/home/\xff\n" + b"deep/" * 100 + b"train.ipynb"
    assert _run(_NAMED, path) == "200 True True"


def _run(script: str, notebook: bytes = b"") -> str:
    environment = {**os.environb, b"JPY_SESSION_NAME": notebook}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()
