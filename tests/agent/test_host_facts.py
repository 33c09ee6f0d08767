"""What the host has and is called, and how its log looks."""

import io
import json
import logging

import pytest

from jupyter_gpupool.agent.host_facts import (
    address_towards,
    is_loopback,
    usable_cpus,
    usable_memory_bytes,
)
from jupyter_gpupool.agent.journal import JsonLines
from jupyter_gpupool.agent.users import UserRules, identity_of
from jupyter_gpupool.pool.errors import NotAllowed, NotFound


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1"])
def test_own_machine_is_loopback(host) -> None:
    """By name and by address."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "pool.org", "0.0.0.0", ""])
def test_others_are_not(host) -> None:
    """Nor is what listens everywhere."""
    assert not is_loopback(host)


def test_host_beside_its_manager_listens_on_loopback() -> None:
    """Nobody else can reach it then."""
    assert address_towards("http://localhost:1") == "127.0.0.1"


def test_there_is_something_to_work_with() -> None:
    """At least one processor and some memory."""
    assert usable_cpus() >= 1
    assert usable_memory_bytes() > 64 * 2**20


def test_log_lines_are_json() -> None:
    """One object a line, whatever the message holds."""
    record = logging.LogRecord("a.b", logging.INFO, "f", 1, "said %r\nand more", ("x",), None)
    stream = io.StringIO(JsonLines().format(record))
    [line] = stream.readlines()
    assert json.loads(line)["message"] == "said 'x'\nand more"


def test_own_user_needs_no_change() -> None:
    """None is the agent's own."""
    assert identity_of(None, UserRules(run_claims_as_agent=True)) is None


def test_unknown_user_is_one_sentence() -> None:
    """It says what to do."""
    with pytest.raises(NotFound, match="no user 'nobody-of-that-name'"):
        identity_of("nobody-of-that-name", UserRules())


def test_only_root_becomes_another_user() -> None:
    """Refused before anything is forked."""
    with pytest.raises(NotAllowed, match="does not run as root"):
        identity_of("root", UserRules(), agent_uid=4242)
