"""Dashboards that cannot be loaded beforehand: the zygote forks on without them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_gpupool.protocol.launch import Exited, Fork, Forked, Warm, decode

_FINDER = """
import sys, importlib.util
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "distributed.dashboard.scheduler":
            return importlib.util.spec_from_file_location(name, {module!r})
sys.meta_path.insert(0, Finder())
"""
_LOG = Fork(ticket=7, uid=None, gid=None, groups=(), descriptors=("log",))


@contextmanager
def _zygote(folder: Path, dashboards: str) -> Iterator[socket.socket]:
    """The agent's end of the link of a zygote that has just tried to load these dashboards."""
    tried, module = folder / "tried", folder / "dashboards.py"
    os.mkfifo(tried)
    module.write_text(f"open({str(tried)!r}, 'w').close()\n{dashboards}\n")
    (folder / "sitecustomize.py").write_text(_FINDER.format(module=str(module)))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    words = (sys.executable, "-m", "jupyter_gpupool.runtime.zygote", "0", str(theirs.fileno()))
    environ = os.environ | {"PYTHONPATH": str(folder)}
    with ours, subprocess.Popen(words, pass_fds=(theirs.fileno(),), env=environ) as zygote:
        theirs.close()
        assert isinstance(decode(ours.recv(8192)), Warm)
        tried.read_text()
        yield ours
        ours.shutdown(socket.SHUT_RDWR)
        assert zygote.wait(60) == 0


@pytest.mark.parametrize(
    "dashboards",
    [
        "raise AttributeError('module numpy has no attribute bool8')",
        (
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
        ),
    ],
    ids=["that raise anything", "that start a thread"],
)
def test_zygote_goes_on_without_dashboards(tmp_path: Path, dashboards: str) -> None:
    """It is the same process: it answers what it was asked, and tells how its children end."""
    with _zygote(tmp_path, dashboards) as link, (tmp_path / "log").open("w") as log:
        socket.send_fds(link, [_LOG.encode()], [log.fileno()])
        forked, ended = decode(link.recv(4096)), decode(link.recv(4096))
    assert isinstance(forked, Forked)
    # It had no launch to live by.
    assert ended == Exited(pid=forked.pid, status=1)
