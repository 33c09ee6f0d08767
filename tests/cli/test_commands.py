"""Commands against a real pool: what people see, and what programs read."""

import json
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from jupyter_gpupool.client import discovery, embedded
from jupyter_gpupool.client.address import PoolAddress, Source

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("released")]
Ask = Callable[..., Any]
Run = Callable[..., Any]
Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        *(("status", dict), ("claims", list), ("hosts", list), ("devices", list)),
        *(("environments", list), ("token list", list)),
    ],
)
def test_answers_are_one_json_document(ask: Ask, command: str, kind: type) -> None:
    """With --json, standard output is nothing else."""
    assert isinstance(ask(*command.split()), kind)


@pytest.mark.parametrize(
    "command", ["status", "claims", "hosts", "devices", "environments", "events", "token list"]
)
def test_people_get_text(run_here: Run, command: str) -> None:
    """Without --json, something to read."""
    done = run_here(*command.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_estimate_says_when_and_claims_nothing(
    ask: Ask, run_here: Run, until_free: Callable[[], None], until_phase: Ask
) -> None:
    """Now, later, or never; and what would start instead."""
    until_free()
    assert run_here("estimate", "4", "--expected", "1h").stdout == "4 now\n"
    holder = ask("claim", "3", "--detach")
    until_phase(holder["id"], "running")
    told = ask("estimate", "2", "--expected", "1h")
    assert (told["now"], told["alternatives"]) == (False, [{"workers": 1, "model": ""}])
    assert "99 never, as the pool is" in run_here("estimate", "99").stdout
    assert [view["id"] for view in ask("claims")] == [holder["id"]]


def test_devices_are_reserved_listed_and_given_up(ask: Ask, run_here: Run) -> None:
    """With the zone in words; what is more than the pool has is refused."""
    window = ("--queue", "default", "--from", "2100-01-05 10:00", "--time-zone", "Europe/Berlin")
    done = run_here("reserve", "3", *window, "--until", "12:00", "--note", "exam")
    assert "3 devices for default, Tue 2100-01-05 10:00 to 12:00 CET (UTC+01:00)" in done.stdout
    [made] = ask("reservations")
    assert (made["begins"], made["note"]) == ("2100-01-05T10:00:00+01:00", "exam")
    refused = run_here("reserve", "2", *window, "--until", "2h")
    assert (refused.returncode, "At most 1 can be" in refused.stderr) == (2, True)
    assert made["id"] in run_here("reservations").stdout
    assert run_here("unreserve", made["id"]).returncode == 0
    assert run_here("unreserve", made["id"]).returncode == 1
    assert run_here("reservations").stdout == "Nothing is reserved.\n"


def test_open_reservation_is_seen_in_the_status(ask: Ask, run_here: Run) -> None:
    """By everybody who may ask."""
    made = ask("reserve", "1", "--queue", "default", "--from", "now", "--until", "1h")
    assert "Reserved: 1 device for default" in run_here("status").stdout
    assert [each["is_open"] for each in ask("status")["reservations"]] == [True]
    ask("unreserve", made["id"])


def test_unknown_claim_is_one_line(run_here: Run) -> None:
    """Status 1."""
    done = run_here("release", "no-such-claim")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


def test_events_are_one_document_a_line(run_here: Run, ask: Ask) -> None:
    """In order, with the claim they are about."""
    made = ask("claim", "1", "--detach")
    done = run_here("events", "--claim", made["id"], "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {event["claim_id"] for event in events} == {made["id"]}
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)


def test_followed_events_come_as_they_happen(ask: Ask, begin: Begin) -> None:
    """Until Ctrl-C."""
    follower = begin("events", "--follow", "--json")
    assert follower.stdout is not None
    made = ask("claim", "1", "--detach")
    deadline = time.monotonic() + 30
    while json.loads(follower.stdout.readline()).get("claim_id") != made["id"]:
        assert time.monotonic() < deadline
    follower.send_signal(signal.SIGINT)
    follower.communicate(timeout=30)
    assert follower.returncode == 130


def test_token_opens_the_pool_until_it_is_revoked(run_here: Run, ask: Ask) -> None:
    """Its secret is printed once, alone on standard output."""
    secret = run_here("token", "create", "--label", "test").stdout.strip()
    assert run_here("status", token=secret).returncode == 0
    token_id = next(token["id"] for token in ask("token", "list") if token["label"] == "test")
    ask("token", "revoke", token_id)
    refused = run_here("status", token=secret)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)


def test_token_of_the_private_pool_says_so(
    run_here: Run, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error: who wants one of another pool learns it before it fails there."""
    own = PoolAddress(
        url=environment["GPUPOOL_URL"],
        token=environment["GPUPOOL_TOKEN"],
        source=Source.RUNTIME_FILE,
    )
    monkeypatch.setattr(discovery, "find", lambda: own)
    monkeypatch.setattr(embedded, "find_or_start", lambda: own)
    made = run_here("token", "create", "--role", "agent")
    assert f"your private pool on this machine ({own.url})" in made.stderr
    assert made.stdout.count("\n") == 1
