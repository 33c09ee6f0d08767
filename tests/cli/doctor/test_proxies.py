"""HTTP proxies of the environment."""

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.proxies import check_proxies

_NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("variables", "severity"),
    [
        ({}, Severity.WELL),
        ({"HTTP_PROXY": "http://proxy:3128"}, Severity.NOTE),
        ({"https_proxy": "http://proxy:3128", "no_proxy": "127.0.0.1"}, Severity.NOTE),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "localhost,127.0.0.1"}, Severity.WELL),
        ({"NO_PROXY": "example.org"}, Severity.WELL),
    ],
)
def test_a_proxy_that_catches_loopback_is_a_note(sees, monkeypatch, variables, severity: Severity):
    """Unless both names of this machine are let past it."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (found,) = check_proxies(sees())
    assert found.severity is severity


def test_a_proxys_password_is_not_told(sees, monkeypatch):
    """The variable's name is enough."""
    monkeypatch.setenv("HTTP_PROXY", "http://me:hunter2@proxy:3128")
    (found,) = check_proxies(sees())
    assert ("HTTP_PROXY" in found.what, "hunter2" in found.what + found.mend) == (True, False)
