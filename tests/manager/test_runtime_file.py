"""The file by which clients find an embedded pool."""

from datetime import UTC, datetime

import pytest

from jupyter_gpupool.client.discovery import from_runtime_file
from jupyter_gpupool.manager.runtime_file import remove_runtime_file, write_runtime_file
from jupyter_gpupool.pool.errors import Unavailable

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def test_client_finds_what_the_manager_wrote(tmp_path):
    """Both sides agree on host, boot, user and process."""
    path = tmp_path / "new" / "gpupool.json"
    write_runtime_file(path, url="http://127.0.0.1:1", token="gpt_x", started=NOW)
    found = from_runtime_file(path)
    assert (found.url, found.token) == ("http://127.0.0.1:1", "gpt_x")


def test_manager_removes_only_its_own_file(tmp_path):
    """A newer manager's file stays."""
    path = tmp_path / "gpupool.json"
    write_runtime_file(path, url="http://127.0.0.1:1", token="gpt_x", started=NOW)
    path.write_text(path.read_text().replace('"manager_started":', '"manager_started":9'))
    remove_runtime_file(path)
    assert path.exists()
    write_runtime_file(path, url="http://127.0.0.1:1", token="gpt_x", started=NOW)
    remove_runtime_file(path)
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_corrupt_file_is_left_alone_and_replaced(tmp_path, text):
    """It is nobody's, and stops nobody."""
    path = tmp_path / "gpupool.json"
    path.write_text(text)
    path.chmod(0o600)
    remove_runtime_file(path)
    assert path.exists()
    write_runtime_file(path, url="http://127.0.0.1:1", token="gpt_x", started=NOW)
    assert from_runtime_file(path) is not None


def test_folder_that_cannot_be_is_one_sentence(tmp_path):
    """Here a file stands where the folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be written"):
        write_runtime_file(
            tmp_path / "file" / "x.json", url="http://127.0.0.1:1", token="", started=NOW
        )
