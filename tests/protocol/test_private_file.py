"""A token's file that cannot be used is one sentence, and what to do."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_gpupool.pool.errors import NotAllowed, NotAuthenticated, NotFound, PoolError
from jupyter_gpupool.protocol.private_file import read_token

_CHOOSE = "Name a file with the token that only you can read (chmod 600), or set IT."


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., str]:
    """Reads a file that holds this."""

    def write_and_read(held: bytes, mode: int = 0o600) -> str:
        file = tmp_path / "token"
        file.write_bytes(held)
        file.chmod(mode)
        return read_token(str(file), otherwise="set IT")

    return write_and_read


def test_token_is_read_without_the_space_around_it(read: Callable[..., str]) -> None:
    """As an editor leaves it."""
    assert read(b" gpt_x\r\n") == "gpt_x"


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("/no/such/token", NotFound, "There is no token file at /no/such/token."),
        ("~nobody-here/token", NotFound, "There is no token file at ~nobody-here/token."),
        ("/tmp", NotAllowed, "The token file /tmp is no ordinary file."),
        ("/dev/null", NotAllowed, "The token file /dev/null is no ordinary file."),
        ("/proc/self/mem", NotAllowed, "The token file /proc/self/mem cannot be read: "),
        ("/etc/passwd/x", NotAllowed, "The token file /etc/passwd/x cannot be read: Not a dir"),
        ("a\0b", NotAllowed, "cannot be read: its name holds a null byte."),
    ],
)
def test_file_that_cannot_be_read_says_so(name: str, kind: type[PoolError], sentence: str) -> None:
    """And which file would do, or what else."""
    with pytest.raises(kind) as told:
        read_token(name, otherwise="set IT")
    assert sentence in told.value.message
    assert told.value.hint == _CHOOSE


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_file_that_is_open_to_others_is_closed_by_a_command(
    read: Callable[..., str], tmp_path: Path, mode: int
) -> None:
    """Its token may be known, and that is said as well."""
    with pytest.raises(NotAllowed, match=f"open to other users .mode {mode:04o}") as told:
        read(b"gpt_x", mode)
    assert told.value.hint.startswith(f"Run: chmod 600 {tmp_path / 'token'};")


@pytest.mark.parametrize(
    ("held", "sentence", "hint"),
    [
        (b"", "is empty.", "Write the token into it, or set IT."),
        (b" \n", "is empty.", "Write the token into it, or set IT."),
        (b"gpt_x\ngpt_y", "holds no token", "Copy the token again, alone on one line"),
        (b"gpt_\xff", "holds no token", "Copy the token again"),
        (b"\0" * 100_000, "holds no token", "Copy the token again"),
    ],
)
def test_file_without_a_token_says_what_it_holds(
    read: Callable[..., str], held: bytes, sentence: str, hint: str
) -> None:
    """Never the text itself, which may be half a token."""
    with pytest.raises(NotAuthenticated, match=sentence) as told:
        read(held)
    assert told.value.hint.startswith(hint)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whoever wrote it could know what is asked with it."""
    file = tmp_path / "token"
    file.write_text("gpt_x")
    file.chmod(0o600)
    os.chown(file, 4242, 4242)
    with pytest.raises(NotAllowed, match="belongs to user 4242, not to you") as told:
        read_token(str(file), otherwise="set IT")
    assert told.value.hint
