"""The agent's state folder."""

import os
import resource

import pytest

from jupyter_gpupool.agent.state_folder import (
    StateFolder,
    open_state_folder,
    read_host_id,
    take_lock,
    write_whole,
)
from jupyter_gpupool.pool.errors import Conflict, NotAllowed, Unavailable


@pytest.fixture
def folder(tmp_path) -> StateFolder:
    return open_state_folder(tmp_path / "state")


def test_host_id_stays_the_same(folder) -> None:
    """It is the host's name for all time."""
    assert read_host_id(folder) == read_host_id(folder)


def test_two_hosts_have_different_ids(folder, tmp_path) -> None:
    """Made by chance."""
    assert read_host_id(folder) != read_host_id(open_state_folder(tmp_path / "other"))


@pytest.mark.parametrize("text", ["", "two words", "x" * 100, "a/b"])
def test_damaged_host_id_is_refused(folder, text) -> None:
    """A new one would lose what runs here."""
    (folder.path / "host-id").write_text(text)
    with pytest.raises(Unavailable, match="host's id"):
        read_host_id(folder)


def test_lock_is_taken_once(folder) -> None:
    """The second one is told who has it."""
    descriptor = take_lock(folder)
    with pytest.raises(Conflict, match=f"pid {os.getpid()}"):
        take_lock(folder)
    os.close(descriptor)


def test_lock_ends_with_its_holder(folder) -> None:
    """The file stays, and stops nobody."""
    os.close(take_lock(folder))
    os.close(take_lock(folder))


def test_others_may_not_look_inside(folder) -> None:
    """Records and logs are the agent's alone."""
    modes = [path.stat().st_mode & 0o077 for path in (folder.running, folder.logs)]
    assert modes == [0, 0]


def test_package_folder_of_somebody_else_is_refused(tmp_path) -> None:
    """What lies in it would be run as every user, and as root."""
    path = tmp_path / "state"
    open_state_folder(path).package.chmod(0o777)
    (path / "package" / "jupyter_gpupool").mkdir()
    with pytest.raises(NotAllowed, match="package"):
        open_state_folder(path)


def test_file_is_written_whole_or_not_at_all(folder) -> None:
    """A failed writing leaves what was there, and no draft."""
    path = folder.path / "file"
    write_whole(path, b"one")
    with pytest.raises(TypeError):
        write_whole(path, "text")  # type: ignore[arg-type]
    assert path.read_bytes() == b"one"


def test_impossible_folder_is_one_sentence(tmp_path) -> None:
    """It says what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="--state"):
        open_state_folder(tmp_path / "file" / "state")


def test_umask_takes_nothing_away(tmp_path) -> None:
    """Users of claims have to get through a root agent's folder, and through those above it."""
    before = os.umask(0o077)
    try:
        made = open_state_folder(tmp_path / "above" / "state")
    finally:
        os.umask(before)
    wanted = 0o711 if os.getuid() == 0 else 0o700
    folders = (made.path.parent, made.path, made.claims)
    assert [path.stat().st_mode & 0o777 for path in folders] == [wanted] * 3


def test_folder_that_others_may_write_is_refused(folder) -> None:
    """They could name processes for root to end."""
    folder.path.chmod(0o777)
    with pytest.raises(NotAllowed, match="chmod go-w"):
        open_state_folder(folder.path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_folder_of_another_user_is_refused(folder) -> None:
    """Whoever owns it may change it."""
    os.chown(folder.running, 65534, 65534)
    with pytest.raises(NotAllowed, match="own user"):
        open_state_folder(folder.path)


def test_folder_that_is_a_link_is_refused(folder, tmp_path) -> None:
    """It leads where its owner likes."""
    folder.claims.rmdir()
    folder.claims.symlink_to(tmp_path)
    with pytest.raises(NotAllowed, match="own user"):
        open_state_folder(folder.path)


def test_lock_follows_no_link(folder, tmp_path) -> None:
    """Taking it empties the file."""
    (tmp_path / "precious").write_text("x")
    (folder.path / "agent.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(Unavailable, match=r"agent\.lock"):
        take_lock(folder)
    assert (tmp_path / "precious").read_text() == "x"


@pytest.mark.parametrize("write", [take_lock, read_host_id])
def test_folder_without_room_is_one_sentence(folder, write) -> None:
    """A full disk, say; here, a process that may write no file."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))
    try:
        with pytest.raises(Unavailable, match=r"cannot write its state folder .*: File too large"):
            write(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
