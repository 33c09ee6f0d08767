"""What the pool says, and what it means for the user."""

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.pool import (
    judge_clock,
    judge_connection,
    judge_devices,
    judge_version,
)
from jupyter_gpupool.cli.doctor.pool_view import PoolView, clock_ahead_s, look_at_pool
from jupyter_gpupool.cli.doctor.sight import Sight
from jupyter_gpupool.client.address import PoolAddress, Source
from jupyter_gpupool.client.errors import unreachable
from jupyter_gpupool.pool.device import DeviceProcess

NOW = dt.datetime.now(dt.UTC)


def judged(environ: dict[str, str]):
    (found,) = judge_connection(look_at_pool(environ))
    return found


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A certificate, its own authority, of a host that nobody is."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "elsewhere.example.org")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    names = x509.SubjectAlternativeName([x509.DNSName("elsewhere.example.org")])
    signed = (
        builder.not_valid_before(NOW - dt.timedelta(days=1))
        .not_valid_after(NOW + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path = tmp_path / "authority.pem"
    path.write_bytes(key.private_bytes(pem, pkcs8, plain) + signed.public_bytes(pem))
    return path


@pytest.fixture
def tls_url(authority: Path) -> Iterator[str]:
    """Where somebody answers with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign] # they hang up on purpose
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_what_the_pool_tells_of_itself_is_a_warning(status):
    """To an admin that passes fail, say; to everybody what keeps their claims from their work."""
    told = "3 of the manager's scheduling passes failed for a defect."
    address = PoolAddress(url="http://127.0.0.1:9", token="t")
    view = PoolView(address=address, status=status(devices=1, problems=(told,)))
    found = {each.reference: each for each in judge_connection(view)}
    assert set(found) == {"pool-answers", "pool-problem"}
    assert (found["pool-problem"].severity, found["pool-problem"].what) == (Severity.WARNING, told)


def test_no_pool_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One's own starts at the first use; asking starts none."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    assert (judged({}).severity, list(tmp_path.iterdir())) == (Severity.NOTE, [])


def test_a_pool_that_does_not_answer_is_a_problem():
    """It says where it was looked for."""
    found = judged({"GPUPOOL_URL": "http://127.0.0.1:9", "GPUPOOL_TOKEN": "t"})
    assert found.severity is Severity.PROBLEM
    assert "http://127.0.0.1:9" in found.what
    assert found.mend


def test_a_private_pool_that_hangs_can_be_ended():
    """Its process is told; no variable would help."""
    address = PoolAddress(
        url="http://127.0.0.1:9", token="t", source=Source.RUNTIME_FILE, manager_pid=4711
    )
    (found,) = judge_connection(PoolView(address=address, error=unreachable("url", "silent")))
    assert (found.severity, "4711" in found.mend) == (Severity.PROBLEM, True)


def test_a_manager_that_is_silent_is_a_problem_in_time():
    """It took the connection, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        found = judged({"GPUPOOL_URL": url, "GPUPOOL_TOKEN": "t"})
    assert (found.severity, "no answer within" in found.what) == (Severity.PROBLEM, True)


def test_a_pool_that_is_never_heard_of_is_a_problem(monkeypatch):
    """Checks that want to know go on without it."""
    monkeypatch.setattr("jupyter_gpupool.cli.doctor.sight.POOL_WITHIN_S", 0.01)
    (found,) = judge_connection(Sight({}, Future()).view())
    assert (found.severity, "did not answer" in found.what) == (Severity.PROBLEM, True)


def test_a_token_file_that_others_can_read_is_a_problem(tmp_path: Path):
    """With the command that closes it."""
    path = tmp_path / "token"
    path.write_text("gpt_secret")
    path.chmod(0o644)
    found = judged({"GPUPOOL_URL": "http://127.0.0.1:9", "GPUPOOL_TOKEN_FILE": str(path)})
    assert f"chmod 600 {path}" in found.mend


def test_an_unknown_authority_is_told_as_one(tls_url: str):
    """The variable that names it is told."""
    found = judged({"GPUPOOL_URL": tls_url, "GPUPOOL_TOKEN": "t"})
    assert "GPUPOOL_CA" in found.mend


def test_another_name_in_the_certificate_is_told_as_one(tls_url: str, authority: Path):
    """No authority would help, but the right name does."""
    found = judged({"GPUPOOL_URL": tls_url, "GPUPOOL_TOKEN": "t", "GPUPOOL_CA": str(authority)})
    assert "mismatch" in found.what
    assert "GPUPOOL_URL" in found.mend


def test_an_authority_file_of_no_use_is_a_problem(tmp_path: Path):
    """As one that is not there."""
    none = str(tmp_path / "none.pem")
    environ = {"GPUPOOL_URL": "https://127.0.0.1:9", "GPUPOOL_TOKEN": "t", "GPUPOOL_CA": none}
    assert none in judged(environ).what


@pytest.mark.parametrize(
    ("ahead_s", "severity"),
    [
        (0.4, Severity.WELL),
        (-29, Severity.WELL),
        (31, Severity.WARNING),
        (-400, Severity.WARNING),
        (-90_000, Severity.PROBLEM),
    ],
)
def test_a_clock_is_judged_by_how_far_it_is_off(ahead_s: float, severity: Severity):
    """Either way; by more than a day, certificates are not valid any more."""
    (found,) = judge_clock(PoolView(clock_ahead_s=ahead_s))
    assert found.severity is severity


def test_the_clock_is_read_from_a_date_header():
    """A manager that says no time is not judged."""
    here = dt.datetime(2026, 11, 30, 12, 1, tzinfo=dt.UTC)
    assert clock_ahead_s("Mon, 30 Nov 2026 12:00:00 GMT", here) == 60
    assert clock_ahead_s("", here) is None
    assert list(judge_clock(PoolView())) == []


@pytest.mark.parametrize(("there", "severity"), [("1.0", Severity.WELL), ("2.0", Severity.WARNING)])
def test_another_release_of_the_manager_is_a_warning(status, there: str, severity: Severity):
    """The line that installs its release is told."""
    (found,) = judge_version(PoolView(status=status(version=there)), "1.0")
    assert (found.severity, found.mend.endswith("==2.0")) == (severity, there == "2.0")


def test_devices_of_the_pool_that_others_use_are_a_warning(status, a_device):
    """Another pool on the host, or a process that claimed nothing."""
    foreign = a_device("GPU-2", foreign=(DeviceProcess(pid=1, memory_bytes=None),))
    devices = [a_device("GPU-1", held_elsewhere=True), foreign, a_device("GPU-3")]
    found = list(judge_devices(PoolView(status=status(), devices=devices)))
    assert [each.severity for each in found] == [Severity.WARNING, Severity.WARNING]
    assert ("GPU-1" in found[0].what, "GPU-2" in found[1].what) == (True, True)


def test_devices_that_the_pool_has_to_itself_are_well(status, a_device):
    """Leased or not."""
    pool = PoolView(status=status(), devices=[a_device(leased=True), a_device("GPU-2")])
    (found,) = judge_devices(pool)
    assert found.severity is Severity.WELL


def test_a_pool_that_answers_is_well(status):
    """It says how many devices are to be had."""
    address = PoolAddress(url="http://127.0.0.1:9", token="t")
    view = PoolView(address=address, status=status(devices=4, free=3))
    (found,) = judge_connection(view)
    assert found.severity is Severity.WELL
    assert "4 devices, 3 free" in found.what


def test_a_pool_without_devices_is_a_warning(status):
    """It answers, but nobody gets anything."""
    address = PoolAddress(url="http://127.0.0.1:9", token="t")
    (found,) = judge_connection(PoolView(address=address, status=status()))
    assert found.severity is Severity.WARNING
