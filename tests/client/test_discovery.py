"""Where a pool is found, and what is refused on the way."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_gpupool.client.address import PoolAddress, Source
from jupyter_gpupool.client.discovery import from_environment, from_runtime_file
from jupyter_gpupool.pool.errors import BadRequest, NotAllowed, NotAuthenticated, NotFound

URL = "https://gpupool.example.org"


def test_environment_names_pool_and_token() -> None:
    """URL, token and private authority come from the environment."""
    found = from_environment({"GPUPOOL_URL": URL, "GPUPOOL_TOKEN": "t", "GPUPOOL_CA": "/ca"})
    assert found == PoolAddress(url=URL, token="t", ca="/ca", source=Source.ENVIRONMENT)


def test_empty_environment_names_nothing() -> None:
    """A token without a URL is not a pool."""
    assert from_environment({"GPUPOOL_TOKEN": "t"}) is None


def test_pool_without_token_is_an_error_that_helps() -> None:
    """It says which variable is missing."""
    with pytest.raises(NotAuthenticated, match="GPUPOOL_TOKEN_FILE"):
        from_environment({"GPUPOOL_URL": URL})


def test_token_file_is_read(tmp_path: Path) -> None:
    """White space around the token does not matter."""
    file = tmp_path / "token"
    file.write_text("gpt_x\n")
    file.chmod(0o600)
    found = from_environment({"GPUPOOL_URL": URL, "GPUPOOL_TOKEN_FILE": str(file)})
    assert found is not None
    assert found.token == "gpt_x"


def test_token_file_open_to_others_is_refused(tmp_path: Path) -> None:
    """One sentence says which file and how to close it."""
    file = tmp_path / "token"
    file.write_text("gpt_x")
    file.chmod(0o640)
    with pytest.raises(NotAllowed, match="chmod 600"):
        from_environment({"GPUPOOL_URL": URL, "GPUPOOL_TOKEN_FILE": str(file)})


def test_missing_token_file_is_said_to_be_missing(tmp_path: Path) -> None:
    """The path is in the message."""
    with pytest.raises(NotFound, match="no-such"):
        from_environment({"GPUPOOL_URL": URL, "GPUPOOL_TOKEN_FILE": str(tmp_path / "no-such")})


@pytest.mark.parametrize("url", ["gpupool", "ftp://x", "http://", "https:///x"])
def test_what_is_no_url_is_refused(url: str) -> None:
    """Before anything is sent anywhere."""
    with pytest.raises(BadRequest, match="not the URL"):
        from_environment({"GPUPOOL_URL": url, "GPUPOOL_TOKEN": "t"})


@pytest.mark.parametrize("url", ["http://example.org", "http://10.0.0.7:8787"])
def test_token_is_not_sent_in_the_clear(url: str) -> None:
    """Plain HTTP is for loopback alone."""
    with pytest.raises(BadRequest, match="in the clear"):
        from_environment({"GPUPOOL_URL": url, "GPUPOOL_TOKEN": "t"})


def test_token_is_not_in_the_address_shown() -> None:
    """A traceback or a log shows no secret."""
    assert "gpt_secret" not in repr(PoolAddress(url=URL, token="gpt_secret"))


def test_runtime_file_of_a_live_manager_is_used(runtime_file: Callable[..., Path]) -> None:
    """It carries URL, token and pid."""
    found = from_runtime_file(runtime_file(os.getpid()))
    assert found is not None
    assert (found.source, found.manager_pid) == (Source.RUNTIME_FILE, os.getpid())


def test_runtime_file_of_a_dead_manager_is_ignored(runtime_file: Callable[..., Path]) -> None:
    """A pid that is gone means that nobody answers there."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert from_runtime_file(runtime_file(gone.pid)) is None


def test_no_runtime_file_is_no_pool(tmp_path: Path) -> None:
    """The embedded pool is then to be started."""
    assert from_runtime_file(tmp_path / "gpupool.json") is None


def test_runtime_file_open_to_others_is_refused(runtime_file: Callable[..., Path]) -> None:
    """Its token may be known to others, and its URL may be theirs."""
    with pytest.raises(NotAllowed, match=r"gpupool\.json is open to other users"):
        from_runtime_file(runtime_file(os.getpid(), mode=0o644))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_runtime_file_of_another_is_refused(runtime_file: Callable[..., Path]) -> None:
    """Somebody else's file cannot lead us to their manager."""
    path = runtime_file(os.getpid())
    os.chown(path, 65534, 65534)
    with pytest.raises(NotAllowed, match="belongs to user 65534"):
        from_runtime_file(path)


@pytest.mark.parametrize(
    "text",
    ["", "null", "{", '{"url": 1, "token": [], "manager_pid": 1}', '{"manager_pid": 1}', "\x00"],
)
def test_damaged_runtime_file_is_ignored(tmp_path: Path, text: str) -> None:
    """A pool that is started replaces it."""
    path = tmp_path / "gpupool.json"
    path.write_text(text)
    path.chmod(0o600)
    assert from_runtime_file(path) is None


def test_runtime_file_that_blocks_is_refused(tmp_path: Path) -> None:
    """A pipe in its place makes nobody hang."""
    path = tmp_path / "gpupool.json"
    os.mkfifo(path, 0o600)
    with pytest.raises(NotAllowed, match="no ordinary file"):
        from_runtime_file(path)
