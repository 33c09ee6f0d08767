"""Where a pool is found, and what is refused on the way."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpupool.client.address import PoolAddress, Source
from jupyter_gpupool.client.discovery import from_environment, from_runtime_file
from jupyter_gpupool.client.discovery import runtime_file as runtime_file_here
from jupyter_gpupool.client.this_host import started_at
from jupyter_gpupool.pool.errors import BadRequest, NotAllowed, NotAuthenticated, NotFound

URL = "https://gpupool.example.org"


def test_environment_names_pool_and_token() -> None:
    """URL, token and private authority come from the environment."""
    found = from_environment({"GPUPOOL_URL": URL, "GPUPOOL_TOKEN": "t", "GPUPOOL_CA": "/ca"})
    assert found == PoolAddress(url=URL, token="t", ca="/ca", source=Source.ENVIRONMENT)


def test_empty_environment_names_nothing() -> None:
    """Nor does a variable that is set to nothing."""
    assert from_environment({"GPUPOOL_URL": "", "GPUPOOL_TOKEN": " "}) is None


@pytest.mark.parametrize("name", ["GPUPOOL_TOKEN", "GPUPOOL_TOKEN_FILE"])
def test_token_without_a_pool_is_refused(name: str) -> None:
    """It was meant for some pool: another one is not used in its place."""
    with pytest.raises(BadRequest, match=f"{name} is set.*GPUPOOL_URL"):
        from_environment({name: "t"})


@pytest.mark.parametrize("path", ["/tmp", "/dev/null", "/proc/self/mem", "~nobody-here/token"])
def test_what_is_no_token_file_is_a_sentence(path: str) -> None:
    """A folder, a device, a file whose reading fails, the home of nobody."""
    with pytest.raises((NotAllowed, NotFound), match=path):
        from_environment({"GPUPOOL_URL": URL, "GPUPOOL_TOKEN_FILE": path})


def test_empty_token_file_is_said_to_be_empty(tmp_path: Path) -> None:
    """Not that its token is wrong."""
    file = tmp_path / "token"
    file.write_text("\n")
    file.chmod(0o600)
    with pytest.raises(NotAuthenticated, match="is empty"):
        from_environment({"GPUPOOL_URL": URL, "GPUPOOL_TOKEN_FILE": str(file)})


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


@pytest.mark.parametrize(
    "url",
    [
        *("gpupool", "ftp://x", "http://", "https:///x", "https://x:99999", "https://x:port"),
        *(
            "https://[::1",
            "https://x\n.org",
            "https://b\u00fccher.org",
            "https://x:0",
            "https://\udcff",
        ),
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    """Before anything is sent anywhere."""
    with pytest.raises(BadRequest, match="not the URL"):
        from_environment({"GPUPOOL_URL": url, "GPUPOOL_TOKEN": "t"})


@pytest.mark.parametrize("url", ["http://example.org", "http://10.0.0.7:8787"])
def test_token_is_not_sent_in_the_clear(url: str) -> None:
    """Plain HTTP is for loopback alone."""
    with pytest.raises(BadRequest, match="in the clear"):
        from_environment({"GPUPOOL_URL": url, "GPUPOOL_TOKEN": "t"})


@pytest.mark.parametrize("token", ["gpt_s\u00e9cret", "gpt_se cret", "gpt_se\r\nX: cret", "\udcff"])
def test_token_that_cannot_be_sent_is_refused_unseen(token: str) -> None:
    """Before a library shows it in an error."""
    with pytest.raises(BadRequest, match="token") as refused:
        from_environment({"GPUPOOL_URL": URL, "GPUPOOL_TOKEN": token})
    assert "cret" not in str(refused.value)


def test_token_is_not_in_the_address_shown() -> None:
    """A traceback or a log shows no secret."""
    assert "gpt_secret" not in repr(PoolAddress(url=URL, token="gpt_secret"))


def test_runtime_file_of_a_live_manager_is_used(runtime_file: Callable[..., Path]) -> None:
    """It carries URL, token and pid."""
    found = from_runtime_file(runtime_file())
    assert found is not None
    assert (found.source, found.manager_pid) == (Source.RUNTIME_FILE, os.getpid())


def test_runtime_file_of_a_dead_manager_is_ignored(runtime_file: Callable[..., Path]) -> None:
    """A pid that is gone means that nobody answers there."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert from_runtime_file(runtime_file(manager_pid=gone.pid)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"host": "0123456789ab"},
        {"boot_id": "6d3fc7e6-0000-0000-0000-000000000000"},
        {"uid": os.getuid() + 1},
        {"manager_started": 1},
    ],
    ids=["another host", "before a reboot", "another user", "a later process of the same number"],
)
def test_file_of_another_manager_leads_nowhere(
    runtime_file: Callable[..., Path], other: dict[str, Any]
) -> None:
    """Its token is sent to nobody, even where its pid lives."""
    assert from_runtime_file(runtime_file(**other)) is None


@pytest.mark.parametrize("field", ["host", "boot_id", "uid", "manager_started"])
def test_file_that_does_not_say_whose_it_is_leads_nowhere(
    runtime_file: Callable[..., Path], field: str
) -> None:
    """Files of older versions say less, and are replaced."""
    assert from_runtime_file(runtime_file(**{field: None})) is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root sees a process of another user")
def test_process_of_another_user_is_no_manager_of_ours(runtime_file: Callable[..., Path]) -> None:
    """Whoever got its number listens on its port, and must not hear the token."""
    stranger = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, cwd="/", user=65534)
    started = started_at(stranger.pid)
    path = runtime_file(manager_pid=stranger.pid, manager_started=started)
    assert from_runtime_file(path) is None
    stranger.communicate()


def test_runtime_file_is_named_for_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a home that hosts share, each has its own."""
    here = runtime_file_here()
    monkeypatch.setattr(socket, "gethostname", lambda: "another-host")
    assert re.fullmatch(r"gpupool-[0-9a-f]{12}\.json", here.name)
    assert runtime_file_here().name != here.name


def test_no_runtime_file_is_no_pool(tmp_path: Path) -> None:
    """The embedded pool is then to be started."""
    assert from_runtime_file(tmp_path / "gpupool.json") is None


def test_runtime_file_open_to_others_is_refused(runtime_file: Callable[..., Path]) -> None:
    """Its token may be known to others, and its URL may be theirs."""
    with pytest.raises(NotAllowed, match=r"gpupool\.json is open to other users"):
        from_runtime_file(runtime_file(mode=0o644))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_runtime_file_of_another_is_refused(runtime_file: Callable[..., Path]) -> None:
    """Somebody else's file cannot lead us to their manager."""
    path = runtime_file()
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
