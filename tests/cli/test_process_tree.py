"""What the demo started is found again, and only that."""

import os
import subprocess
import sys

from jupyter_gpupool.cli.process_tree import alive, kill, tree


def test_tree_holds_children_and_theirs() -> None:
    """A process, what it started, and what that started."""
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "input()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    found = tree(parent.pid)
    assert {seen.pid for seen in found} == {parent.pid, child}
    assert alive(found) == found
    kill(found)
    parent.communicate()


def test_ended_process_is_not_alive() -> None:
    """Not even as a zombie that nobody has waited for."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = tree(process.pid)
    kill(found)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not alive(found)
    process.communicate()


def test_tree_of_nobody_is_empty() -> None:
    """A pid that is gone has no descendants."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert tree(gone.pid) == set()
