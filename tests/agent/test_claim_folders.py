"""Working folders and logs of claims."""

import os

import pytest

from jupyter_gpupool.agent import claim_folders
from jupyter_gpupool.agent.claim_folders import (
    LARGEST_LOG_BYTES,
    LOGS_KEPT_S,
    cut_large,
    make_working_folder,
    open_log,
    remove_folders,
    remove_old_logs,
    set_aside_working_folders,
)
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.state_folder import open_state_folder
from jupyter_gpupool.pool.errors import Unavailable

KEY = ProcessKey("c1", 1, "l1")


@pytest.fixture
def folder(tmp_path):
    return open_state_folder(tmp_path / "state")


def write_log(folder, text: str) -> None:
    descriptor = open_log(folder, KEY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def test_working_folder_is_its_users_alone(folder) -> None:
    """Making it again changes nothing."""
    path = make_working_folder(folder, "c1", uid=os.getuid(), gid=os.getgid())
    assert make_working_folder(folder, "c1", uid=os.getuid(), gid=os.getgid()) == path
    assert path.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_working_folder_belongs_to_the_claims_user(folder) -> None:
    """A worker that runs as somebody can write there."""
    path = make_working_folder(folder, "c1", uid=65534, gid=65534)
    assert path.stat().st_uid == 65534


def test_working_folder_is_never_a_link(folder, tmp_path) -> None:
    """Root's hand is not led elsewhere."""
    folder.claim("c1").symlink_to(tmp_path)
    with pytest.raises(Unavailable, match="link"):
        make_working_folder(folder, "c1", uid=os.getuid(), gid=os.getgid())


def test_log_is_never_opened_through_a_link(folder, tmp_path) -> None:
    """Nor is its hand led elsewhere here."""
    folder.log(KEY).parent.mkdir()
    folder.log(KEY).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="cannot be opened"):
        open_log(folder, KEY)


def test_log_is_appended_to(folder) -> None:
    """A worker that is forked again goes on in the same log."""
    write_log(folder, "one\n")
    write_log(folder, "two\n")
    assert folder.log(KEY).read_text() == "one\ntwo\n"


def test_folder_of_a_claim_that_is_over_goes(folder) -> None:
    """And only that one."""
    for claim_id in ("c1", "c2"):
        make_working_folder(folder, claim_id, uid=os.getuid(), gid=os.getgid())
        (folder.claim(claim_id) / "file").write_text("x")
    remove_folders(set_aside_working_folders(folder, keep={"c2"}))
    assert [path.name for path in folder.claims.iterdir()] == ["c2"]


def test_removal_follows_no_link(folder, tmp_path) -> None:
    """A user's link leads out of the folder, the removal does not."""
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "file").write_text("x")
    path = make_working_folder(folder, "c1", uid=os.getuid(), gid=os.getgid())
    (path / "link").symlink_to(treasure)
    remove_folders(set_aside_working_folders(folder, keep=()))
    assert (treasure / "file").exists()


def test_logs_of_an_ended_claim_stay_for_a_week(folder, monkeypatch) -> None:
    """Then they go too."""
    write_log(folder, "x")
    remove_old_logs(folder, keep=())
    assert folder.log(KEY).exists()
    stat = folder.log(KEY).stat()
    old = (stat.st_atime, stat.st_mtime - LOGS_KEPT_S - 1)
    os.utime(folder.log(KEY), old)
    remove_old_logs(folder, keep={"c1"})
    assert folder.log(KEY).exists()
    remove_old_logs(folder, keep=())
    assert not folder.log(KEY).parent.exists()


def test_large_log_is_cut_to_its_end(folder, monkeypatch) -> None:
    """Its writer goes on behind what is kept."""
    assert LARGEST_LOG_BYTES >= 2**20
    monkeypatch.setattr(claim_folders, "LARGEST_LOG_BYTES", 1000)
    monkeypatch.setattr(claim_folders, "_KEPT_OF_LARGE_LOG_BYTES", 10)
    descriptor = open_log(folder, KEY)
    os.write(descriptor, b"x" * 2000 + b"the end\n")
    remove_old_logs(folder, keep={"c1"})
    os.write(descriptor, b"more\n")
    os.close(descriptor)
    assert folder.log(KEY).read_bytes() == b"xxthe end\nmore\n"


def test_folder_that_is_wanted_meanwhile_stays(folder) -> None:
    """It is out of the way of the old one, which goes at leisure."""
    old = make_working_folder(folder, "c1", uid=os.getuid(), gid=os.getgid())
    (old / "old").write_text("x")
    gone = set_aside_working_folders(folder, keep=())
    new = make_working_folder(folder, "c1", uid=os.getuid(), gid=os.getgid())
    remove_folders(gone)
    assert list(folder.claims.iterdir()) == [new]
    assert not list(new.iterdir())


def test_folder_that_a_dead_agent_set_aside_goes(folder) -> None:
    """Whatever is wanted now."""
    make_working_folder(folder, "c1", uid=os.getuid(), gid=os.getgid())
    set_aside_working_folders(folder, keep=())
    remove_folders(set_aside_working_folders(folder, keep={"c1"}))
    assert not list(folder.claims.iterdir())


def test_only_large_logs_are_cut(folder, tmp_path) -> None:
    """One that is not there is no problem."""
    write_log(folder, "x")
    assert cut_large([folder.log(KEY), tmp_path / "none"]) == 0
