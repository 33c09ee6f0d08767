"""A control group a process, where the agent may make one."""

import os
import subprocess
import sys

import pytest

from jupyter_gpupool.agent.control_groups import ControlGroups, pids_in
from jupyter_gpupool.agent.keys import ProcessKey

KEY = ProcessKey("c1", 1, "l1")


@pytest.fixture
def groups(tmp_path, monkeypatch) -> ControlGroups:
    """Groups in a plain folder laid out as the kernel's version 2, as root sees it."""
    (tmp_path / "cgroup.controllers").write_text("")
    monkeypatch.setattr("os.getuid", lambda: 0)
    return ControlGroups("host-1", mount=tmp_path)


def test_process_is_put_into_its_own_group(groups) -> None:
    """Which is found again by its key alone."""
    groups.put(KEY, 42)
    assert pids_in(groups.folder(KEY)) == {42}


def test_groups_inside_a_group_count(groups) -> None:
    """A worker may make some."""
    groups.put(KEY, 42)
    inner = groups.folder(KEY) / "inner"
    inner.mkdir()
    (inner / "cgroup.procs").write_text("43\n44\n")
    assert pids_in(groups.folder(KEY)) == {42, 43, 44}


def test_host_without_the_right_does_without(tmp_path, monkeypatch) -> None:
    """No group, no error."""
    monkeypatch.setattr("os.getuid", lambda: 1000)
    groups = ControlGroups("host-1", mount=tmp_path)
    groups.put(KEY, 42)
    assert groups.folder(KEY) is None


def test_refused_group_is_not_asked_for_again(tmp_path, monkeypatch) -> None:
    """A read-only mount, as in many containers."""
    monkeypatch.setattr("os.getuid", lambda: 0)
    (tmp_path / "freezer").write_text("no folder")
    groups = ControlGroups("host-1", mount=tmp_path)
    groups.put(KEY, 42)
    (tmp_path / "freezer").unlink()
    groups.put(KEY, 42)
    assert pids_in(groups.folder(KEY)) == frozenset()


def test_groups_that_exist_are_found_after_a_refusal(groups, tmp_path) -> None:
    """One failure must not hide what runs in them."""
    groups.put(KEY, 42)
    other = ProcessKey("c2", 1, "l2")
    groups.folder(other).write_text("in the way")
    groups.put(other, 43)
    assert pids_in(groups.folder(KEY)) == {42}


@pytest.mark.skipif(
    os.getuid() != 0 or not os.access("/sys/fs/cgroup/freezer", os.W_OK),
    reason="no control groups may be made here",
)
def test_real_group_holds_a_process_and_goes_with_it(request) -> None:
    """Nothing is left behind."""
    groups = ControlGroups(f"test-{os.getpid()}")
    request.addfinalizer(groups.tidy)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    groups.put(KEY, child.pid)
    assert pids_in(groups.folder(KEY)) == {child.pid}
    child.communicate(b"\n")
    groups.remove(KEY)
    assert not groups.folder(KEY).exists()
