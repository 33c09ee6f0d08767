"""The file that names a policy: read as people's editors write it, and never half."""

import pytest

from jupyter_gpupool.manager.policy_file import read_policy_file
from jupyter_gpupool.pool.errors import BadRequest


def test_no_file_is_no_policy():
    """The last revision stays in force."""
    assert read_policy_file("") == ""


def test_mark_of_an_editor_is_left_out(tmp_path):
    """Some editors begin a UTF-8 file with one, which TOML does not know."""
    file = tmp_path / "policy.toml"
    file.write_bytes(b"\xef\xbb\xbf[queues.a]\n")
    assert read_policy_file(str(file)) == "[queues.a]\n"


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\x00"])
def test_what_is_no_document_is_refused(tmp_path, content):
    """An admin who emptied the file by mistake must not believe it is in force."""
    file = tmp_path / "policy.toml"
    file.write_bytes(content)
    with pytest.raises(BadRequest) as refused:
        read_policy_file(str(file))
    assert str(file) in refused.value.message
