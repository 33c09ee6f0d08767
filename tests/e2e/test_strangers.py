"""Nobody reaches another's claim: not by the API, not by Dask, not by a dashboard."""

import http.client
import os
import pwd
import socket
import ssl
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from e2e_harness.devices import TestDevices
from e2e_harness.interpreters import open_to
from e2e_harness.processes import carrying
from e2e_harness.running_pool import MakePool, RunningPool, Setup
from waiting import eventually

NOBODY = pwd.getpwnam("nobody")


@dataclass(frozen=True, slots=True)
class TwoClaims:
    """A claim of each of two users, both running."""

    pool: RunningPool
    first: str
    second: str

    def connection(self, owner: str, claim_id: str) -> Any:
        """How an owner reaches its claim."""
        return self.pool.api_of(owner).get(f"/claims/{claim_id}/connection")


@pytest.fixture(scope="module")
def pool(
    make_pool: MakePool, devices: Callable[[int], TestDevices], folders: Callable[[], Path]
) -> RunningPool:
    """A pool whose users' workers run as another user, where the tests may choose one."""
    if os.geteuid() != 0:
        me = pwd.getpwuid(os.getuid()).pw_name
        return make_pool(devices(2), Setup(os_user=me)).start()
    interpreter = open_to(NOBODY.pw_uid, folders())
    if interpreter is None:
        pytest.skip("no Python here that another user may run")
    setup = Setup(os_user=NOBODY.pw_name, interpreter=interpreter)
    return make_pool(devices(2), setup).start()


@pytest.fixture(scope="module")
def claims(pool: RunningPool) -> Iterator[TwoClaims]:
    """The claims of Ada and of Ben."""
    ids = [pool.api_of(owner).claim(name=owner) for owner in ("ada", "ben")]
    for claim_id in ids:
        pool.wait_phase(claim_id, "running")
    yield TwoClaims(pool, *ids)
    for claim_id in ids:
        pool.end(claim_id)


@pytest.mark.parametrize("path", ["", "/connection"])
def test_strangers_claim_is_not_found(claims: TwoClaims, path: str) -> None:
    """Not even its existence is told."""
    answer = claims.pool.api_of("ben").try_get(f"/claims/{claims.first}{path}")
    assert answer.status_code == 404
    assert claims.first not in str(claims.pool.api_of("ben").get("/claims"))


@pytest.mark.parametrize("action", ["scale", "release"])
def test_stranger_changes_nothing(claims: TwoClaims, action: str) -> None:
    """A stranger can neither scale nor release it."""
    body = {"workers": {"min": 0, "max": 0}} if action == "scale" else {}
    answer = claims.pool.api_of("ben").try_post(f"/claims/{claims.first}/{action}", body)
    assert answer.status_code == 404
    assert claims.pool.api.phase(claims.first) == "running"


def test_scheduler_refuses_a_connection_without_certificate(claims: TwoClaims) -> None:
    """TLS alone is not enough: the claim's own authority must have signed the caller."""
    mine = claims.connection("ada", claims.first)
    assert not _is_served(_address(mine), _context(mine["ca"]))


def test_scheduler_refuses_another_claims_certificate(claims: TwoClaims, tmp_path: Path) -> None:
    """A certificate of this pool that belongs to another claim opens nothing."""
    mine = claims.connection("ada", claims.first)
    other = claims.connection("ben", claims.second)
    assert not _is_served(_address(mine), _context(mine["ca"], other, tmp_path))
    assert _is_served(_address(mine), _context(mine["ca"], mine, tmp_path))


@pytest.mark.parametrize("path", ["/", "/status", "/metrics", "/info/main/workers.html", "/json"])
def test_dashboard_without_its_prefix_is_not_found(claims: TwoClaims, path: str) -> None:
    """Only its secret prefix leads to a dashboard."""
    url = _dashboard(claims)
    assert _get(url.hostname, url.port, path) == 404
    prefix = "/" + url.path.strip("/").split("/")[0]
    assert _get(url.hostname, url.port, f"{prefix}/status") == 200


def test_every_listening_socket_asks_who_is_there(claims: TwoClaims) -> None:
    """All that the pool's processes listen on: TLS with a secret, or the manager's API."""
    for found in carrying(claims.pool.mark):
        for connection in psutil.Process(found.pid).net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                host, port = connection.laddr
                assert host == "127.0.0.1"
                assert port == claims.pool.port or _is_guarded(port), f"{found.command} {port}"


def test_manager_answers_nothing_but_its_health_without_a_token(claims: TwoClaims) -> None:
    """Every route of the API's own description asks for a token."""
    paths = httpx.get(f"{claims.pool.url}/api/v1/openapi.json", trust_env=False)
    if paths.status_code == 401:
        return
    for path, methods in paths.json()["paths"].items():
        for method in methods:
            url = claims.pool.url + path.replace("{claim_id}", claims.first).replace("{id}", "x")
            answer = httpx.request(method, url, json={}, trust_env=False)
            assert answer.status_code == 401 or path == "/health", f"{method} {path}: {answer}"


def _address(connection: Any) -> tuple[str, int]:
    url = urllib.parse.urlsplit(connection["scheduler_address"])
    assert url.hostname is not None
    assert url.port is not None
    return url.hostname, url.port


def _context(ca: str, own: Any = None, folder: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca)
    context.check_hostname = False
    if own is not None and folder is not None:
        file = folder / f"{hash(own['key'])}.pem"
        file.write_text(own["certificate"] + own["key"])
        context.load_cert_chain(file)
    return context


def _is_served(address: tuple[str, int], context: ssl.SSLContext) -> bool:
    """Whether the other side goes on talking after the handshake."""
    with socket.create_connection(address, timeout=5) as plain:
        try:
            with context.wrap_socket(plain) as secure:
                secure.settimeout(3)
                # A Dask listener speaks first, once it has accepted the certificate.
                return bool(secure.recv(1))
        except (ssl.SSLError, ConnectionError, TimeoutError):
            return False


def _is_guarded(port: int) -> bool:
    """Whether a socket serves nobody who has no certificate and knows no prefix."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if not _is_served(("127.0.0.1", port), context):
        return _get_plain(port) is None and _get("127.0.0.1", port, "/status") in (404, None)
    return False


def _dashboard(claims: TwoClaims) -> urllib.parse.SplitResult:
    url = eventually(
        lambda: claims.connection("ada", claims.first)["dashboard_url"], 15, "a dashboard is up"
    )
    return urllib.parse.urlsplit(url)


def _get(host: str | None, port: int | None, path: str) -> int | None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(str(host), port, timeout=5, context=context)
    return _status(connection, path)


def _get_plain(port: int) -> int | None:
    return _status(http.client.HTTPConnection("127.0.0.1", port, timeout=5), "/")


def _status(connection: http.client.HTTPConnection, path: str) -> int | None:
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
