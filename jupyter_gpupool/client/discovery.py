"""Where a client finds its pool: the environment, then the user's runtime file, else nowhere.

Called by `pools`. Starting an embedded pool is `embedded`'s business.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from jupyter_gpupool.pool.errors import BadRequest, NotAuthenticated, NotFound
from jupyter_gpupool.protocol.private_file import read_private, read_token
from jupyter_gpupool.protocol.runtime_file import RuntimeFile, runtime_file_name

from .address import PoolAddress, Source
from .this_host import ThisHost, started_at

URL = "GPUPOOL_URL"
TOKEN = "GPUPOOL_TOKEN"  # noqa: S105 - a variable's name
TOKEN_FILE = "GPUPOOL_TOKEN_FILE"  # noqa: S105 - a variable's name
CA = "GPUPOOL_CA"


def find(environ: Mapping[str, str] | None = None) -> PoolAddress | None:
    """The pool this process is meant to use, or None if none is named and none runs.

    Raises:
        PoolError: If what is named cannot be used; the sentence says why.
    """
    named = from_environment(os.environ if environ is None else environ)
    return named or from_runtime_file(runtime_file())


def from_environment(environ: Mapping[str, str]) -> PoolAddress | None:
    """The pool that the environment names, or None.

    Raises:
        BadRequest: If it names a token, but no pool to use it for.
        NotAuthenticated: If it names a pool but no token for it.
        PoolError: If the token's file cannot be used; the sentence says why.
    """
    url = environ.get(URL, "").strip()
    if not url:
        _check_no_token(environ)
        return None
    return PoolAddress(url=url, token=_token(environ), ca=environ.get(CA, ""))


def from_runtime_file(path: Path) -> PoolAddress | None:
    """The embedded pool that runs here, or None: no file, or one of a manager that is gone.

    A file of another host, another boot or another user's manager is none of ours: nothing is
    ever sent to where it points.

    Raises:
        NotAllowed: If the file is another's or open to others.
    """
    try:
        text = read_private(path, what="runtime file")
    except NotFound:
        return None
    # What cannot be read was written by nobody we know: a pool that is started replaces it.
    with contextlib.suppress(ValueError, BadRequest):
        said = RuntimeFile.model_validate_json(text)
        if ThisHost.read().runs(said):
            return PoolAddress(
                url=said.url,
                token=said.token,
                source=Source.RUNTIME_FILE,
                manager_pid=said.manager_pid,
                manager_started=said.manager_started,
            )
    return None


def runtime_file() -> Path:
    """Where this user's embedded manager on this host says how it is reached."""
    from jupyter_core.paths import jupyter_runtime_dir  # noqa: PLC0415 - keeps import time low

    return Path(jupyter_runtime_dir()) / runtime_file_name(ThisHost.read().mark)


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs; a zombie does not."""
    return started_at(pid) is not None


def _token(environ: Mapping[str, str]) -> str:
    if token := environ.get(TOKEN, "").strip():
        return token
    if path := environ.get(TOKEN_FILE, ""):
        return read_token(path, otherwise=f"set {TOKEN}")
    raise NotAuthenticated(
        f"{URL} names a pool, but there is no token for it.",
        hint=f"Set {TOKEN_FILE} to a file that only you can read, or {TOKEN}; whoever runs the pool"
        " makes you a token: jupyter gpupool token create --user NAME.",
    )


def _check_no_token(environ: Mapping[str, str]) -> None:
    """A token alone was meant for some pool: quietly using another one would surprise."""
    for name in (TOKEN, TOKEN_FILE):
        if environ.get(name, "").strip():
            raise BadRequest(
                f"{name} is set, but {URL} is not, so it is not known which pool it is for.",
                field=name,
                hint=f"Set {URL} too, or unset {name} to use your private pool on this machine.",
            )
