"""Who has the manager's port."""

import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.port import judge_port, look_at_port


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"status":"ok"}')

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def well_port() -> Iterator[int]:
    """Where something answers as a manager that is well."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Health) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_port_that_another_program_has_is_a_warning():
    """It is named, and so is the option that helps."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        facts = look_at_port(server.getsockname()[1])
    found = judge_port(facts)
    assert found.severity is Severity.WARNING
    assert f"process {os.getpid()} " in found.what
    assert "--port" in found.mend


def test_a_manager_on_the_port_is_a_note(well_port: int):
    """It may be the very pool that is looked for."""
    found = judge_port(look_at_port(well_port))
    assert (found.severity, str(well_port) in found.mend) == (Severity.NOTE, True)


def test_a_free_port_is_well_and_stays_free():
    """Looking leaves nothing behind."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert judge_port(look_at_port(port)).severity is Severity.WELL
    socket.create_server(("127.0.0.1", port)).close()
