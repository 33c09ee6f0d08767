"""The pool that a process uses is its own."""

import os
import subprocess
import sys

from jupyter_gpupool.client import discovery

_FORKS = """
import os, threading
from jupyter_gpupool.client.pools import current_pool
current_pool().background.loop
if not (child := os.fork()):
    print(*(thread.name for thread in threading.enumerate()), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_forked_child_closes_nothing_of_its_parents() -> None:
    """It lets go of the pool, but the connections and their loop are not its own."""
    named = {discovery.URL: "http://127.0.0.1:9", discovery.TOKEN: "gpt_x"}
    command = [sys.executable, "-W", "ignore", "-c", _FORKS]
    done = subprocess.run(
        command, env=os.environ | named, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "MainThread\n"
