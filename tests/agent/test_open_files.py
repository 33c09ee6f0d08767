"""The agent uses what the host allows, and its children get what it was given."""

import resource
import subprocess
import sys

import pytest

from jupyter_gpupool.agent.open_files import OpenFiles


@pytest.fixture
def files():
    """With a low soft limit, as most hosts have."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = 4096 if before[1] == resource.RLIM_INFINITY else min(4096, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, before[1]))
    yield OpenFiles()
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_soft_limit_is_raised(files) -> None:
    """Up to the hard one."""
    files.raise_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > files.given[0]


def test_child_gets_what_was_given(files) -> None:
    """A program that closes all that could be open takes no longer than before."""
    files.raise_limit()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    files.give(child.pid)
    assert resource.prlimit(child.pid, resource.RLIMIT_NOFILE) == files.given
    child.communicate(b"\n")


def test_child_that_has_gone_needs_nothing(files) -> None:
    """It may end before anyone looked."""
    files.give(2**22 - 1)
