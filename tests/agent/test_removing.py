"""What a user left is removed, however it is made; what it points to is not."""

import os
import subprocess

import pytest

from jupyter_gpupool.agent.removing import remove

IS_ROOT = os.getuid() == 0


@pytest.fixture
def left(tmp_path):
    """A folder that a claim left, and one beside it that is somebody else's."""
    folder, other = tmp_path / "left", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (other / "precious").write_text("kept")
    return folder, other


def test_folder_goes_with_all_that_is_in_it(left):
    """Files, folders in folders, sockets, and what is there no more."""
    folder, _ = left
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").touch()
    os.mkfifo(folder / "pipe")
    assert remove(folder) is None
    assert not folder.exists()
    assert remove(folder) is None
    assert remove(folder / "deeper") is None


@pytest.mark.parametrize("where", ["inside", "in its place"])
def test_link_is_removed_and_never_followed(left, where):
    """Whatever it points to."""
    folder, other = left
    if where == "inside":
        (folder / "link").symlink_to(other)
        (folder / "file").symlink_to(other / "precious")
    else:
        folder.rmdir()
        folder.symlink_to(other)
    assert remove(folder) is None
    assert not os.path.lexists(folder)
    assert (other / "precious").read_text() == "kept"


@pytest.mark.parametrize("mode", [0o000, 0o500, 0o400])
def test_folder_that_nobody_may_write_goes(left, mode):
    """Its user's own agent opens it first."""
    folder, _ = left
    (folder / "shut").mkdir()
    (folder / "shut" / "file").touch()
    (folder / "shut").chmod(mode)
    assert remove(folder) is None


def test_file_that_is_open_goes(left):
    """Whoever has it open keeps it, and nobody else finds it."""
    folder, _ = left
    with (folder / "open").open("w") as file:
        assert remove(folder) is None
        file.write("still there")


def test_depth_stops_nothing(left):
    """However many folders in folders: deeper than any path can name."""
    folder, other = left
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert remove(folder) is None
    assert list(folder.parent.iterdir()) == [other]


@pytest.mark.skipif(not IS_ROOT, reason="only root can make a file immutable, or mount")
def test_what_is_stuck_too_deep_is_stuck_until_it_is_gone(left):
    """It stays within what was to be removed, so that another try finds it."""
    folder, other = left
    deepest = folder.joinpath(*"d" * 150)
    deepest.mkdir(parents=True)
    (deepest / "immutable").touch()
    if subprocess.run(["chattr", "+i", deepest / "immutable"], check=False).returncode:
        pytest.skip("this file system knows no immutable files")
    try:
        assert [remove(folder).why for _ in range(3)] == ["operation not permitted"] * 3
        assert set(folder.parent.iterdir()) == {folder, other}
    finally:
        [stuck] = folder.rglob("immutable")
        subprocess.run(["chattr", "-i", stuck], check=True)
    assert remove(folder) is None
    assert list(folder.parent.iterdir()) == [other]


def test_immutable_file_is_said_and_all_else_goes(left):
    """The path and the system's own reason."""
    folder, _ = left
    (folder / "a").touch()
    (folder / "immutable").touch()
    (folder / "z").touch()
    if subprocess.run(["chattr", "+i", folder / "immutable"], check=False).returncode:
        pytest.skip("this file system knows no immutable files")
    try:
        stuck = remove(folder)
    finally:
        subprocess.run(["chattr", "-i", folder / "immutable"], check=True)
    assert str(stuck) == f"{folder / 'immutable'} (operation not permitted)"
    assert [path.name for path in folder.iterdir()] == ["immutable"]
    assert remove(folder) is None


@pytest.mark.skipif(not IS_ROOT, reason="only root can make a file immutable, or mount")
def test_what_is_mounted_inside_is_not_touched(left):
    """It may be anybody's files."""
    folder, _ = left
    mount = folder / "mount"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", mount], check=False).returncode:
        pytest.skip("nothing may be mounted here")
    try:
        (mount / "precious").touch()
        stuck = remove(folder)
        assert "mounted" in str(stuck)
        assert (mount / "precious").exists()
    finally:
        subprocess.run(["umount", mount], check=True)
