"""Commands against a real pool: what people see, and what programs read."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from jupyter_gpupool.cli import claims, root
from jupyter_gpupool.client import discovery, embedded
from jupyter_gpupool.client.address import PoolAddress, Source
from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.pool.errors import Unavailable

pytestmark = pytest.mark.e2e
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user of a real pool."""
    folder = tmp_path_factory.mktemp("pool")
    with EmbeddedPool(folder, options=("--simulated=4",)) as pool:
        assert pool.address is not None
        _await_devices(pool.address)
        yield {"GPUPOOL_URL": pool.address.url, "GPUPOOL_TOKEN": pool.address.token}


def _await_devices(address: PoolAddress) -> None:
    """A manager answers before its host has joined it."""
    deadline = time.monotonic() + 60
    with httpx.Client(headers={"Authorization": f"Bearer {address.token}"}) as client:
        while client.get(f"{address.url}/api/v1/status").json()["devices"] != 4:
            assert time.monotonic() < deadline, "its host has not joined"
            time.sleep(0.05)


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit status."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run_here(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run a command within this process, which saves the second that a Python takes to start."""

    def start(*arguments: str, token: str = environment["GPUPOOL_TOKEN"]) -> Done:
        monkeypatch.setenv("GPUPOOL_URL", environment["GPUPOOL_URL"])
        monkeypatch.setenv("GPUPOOL_TOKEN", token)
        capsys.readouterr()
        status = root.run(arguments)
        return Done(status, *capsys.readouterr())

    return start


@pytest.fixture
def ask(run_here: Run) -> Ask:
    """Run a command with --json and read its answer."""

    def answer(*arguments: str) -> Any:
        done = run_here(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return answer


@pytest.fixture(autouse=True)
def _released(run_here: Run) -> Iterator[None]:
    yield
    run_here("release", "--all")


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


def test_detached_claim_hibernates_and_resumes(ask: Ask) -> None:
    """By its name; its devices are given back in between."""
    made = ask("claim", "1", "--detach", "--name", "sleeper")
    _await_phase(ask, "sleeper", "running")
    assert ask("hibernate", "sleeper", "--reason", "lunch")["id"] == made["id"]
    assert _await_phase(ask, "sleeper", "hibernated")["leases"] == []
    assert ask("resume", "sleeper")["phase"] in ("resuming", "starting", "running")
    _await_phase(ask, "sleeper", "running")
    ask("release", "sleeper")


def _await_phase(ask: Ask, name: str, phase: str) -> Any:
    deadline = time.monotonic() + 60
    while True:
        [found] = [view for view in ask("claims") if view["name"] == name]
        if found["phase"] == phase and (phase != "hibernated" or not found["leases"]):
            return found
        assert time.monotonic() < deadline, f"it is {found['phase']}: {found['reason']}"
        time.sleep(0.1)


def test_detached_claim_is_scaled_and_released(ask: Ask) -> None:
    """Made, found by name, given other bounds, given back."""
    made = ask("claim", "1", "--name", "left alone", "--detach")
    scaled = ask("scale", "left alone", "2")
    assert (scaled["id"], scaled["workers"]) == (made["id"], {"min": 1, "max": 2})
    released = ask("release", "left alone")
    assert released[0]["phase"] in ("ending", "ended")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_detached_claim_says_how_to_come_back(run_here: Run, more: tuple[str, ...]) -> None:
    """In one line on standard error, so that what a script reads stays as it is."""
    done = run_here("claim", "1", "--name", "away", "--detach", *more)
    claim_id = json.loads(done.stdout)["id"] if more else done.stdout.split()[0]
    assert (done.stdout.count("\n"), done.stderr.count("\n")) == (1, 1)
    assert f'jupyter_gpupool.attach("{claim_id}")' in done.stderr
    assert f"jupyter gpupool release {claim_id}" in done.stderr


def test_scaling_beyond_the_pool_says_how_much_there_is(ask: Ask, run_here: Run) -> None:
    """The claim may grow later, when more hosts join."""
    ask("claim", "1", "--name", "greedy", "--detach")
    done = run_here("scale", "greedy", "99")
    assert (done.returncode, done.stderr) == (0, "The pool has no more than 4 devices now.\n")
    assert run_here("scale", "greedy", "2").stderr == ""


def test_part_of_a_device_is_claimed_and_shown(ask: Ask, run_here: Run) -> None:
    """By its share or by its memory; what is left of the device is said."""
    half = ask("claim", "0.5", "--detach")
    quarter = ask("claim", "1", "--gpu-memory", "4GiB", "--detach")
    for claim in (half, quarter):
        _wait_for_phase(ask, claim["id"], "running")
    assert ask("explain", quarter["id"])["phase"] == "running"
    [shared] = [each for each in ask("devices") if each["leased"]]
    assert (sorted(each["share"] for each in shared["holders"]), shared["left"]) == (
        [0.25, 0.5],
        0.25,
    )
    table = " ".join(run_here("devices").stdout.split())
    assert "0.25 of it free" in table
    ask("release", "--all")
    _wait_until_free(ask)


def test_worker_with_several_devices_is_claimed(ask: Ask) -> None:
    """GPUS counts devices: four of them are two workers with two each."""
    claim = ask("claim", "4", "--gpus-per-worker", "2", "--detach")
    assert claim["workers"] == {"min": 2, "max": 2}
    assert [len(lease["devices"]) for lease in claim["leases"]] == [2, 2]
    assert ask("estimate", "1", "--gpu-memory", "40GiB")["never"]
    ask("release", "--all")
    _wait_until_free(ask)


def test_claim_goes_to_the_queue_and_class_that_are_named(ask: Ask, run_here: Run) -> None:
    """As in Python; a queue that is not there is refused in one line."""
    claim = ask("claim", "1", "--queue", "default", "--priority", "batch", "--detach", "--json")
    assert (claim["queue"], claim["priority"]) == ("default", "batch")
    ask("release", claim["id"], "--json")
    refused = run_here("claim", "1", "--queue", "nobodys", "--detach")
    assert refused.returncode != 0
    assert "default" in refused.stderr


def test_estimate_says_when_and_claims_nothing(ask: Ask, run_here: Run) -> None:
    """Now, later, or never; and what would start instead."""
    _wait_until_free(ask)
    assert run_here("estimate", "4", "--expected", "1h").stdout == "4 now\n"
    holder = ask("claim", "3", "--detach")
    _wait_for_phase(ask, holder["id"], "running")
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


def test_claim_is_explained_and_its_log_shown(ask: Ask, run_here: Run) -> None:
    """Why it is where it is, and what its processes said last."""
    made = ask("claim", "1", "--name", "curious", "--detach")
    assert ask("explain", "curious")["claim"] == made["id"]
    assert run_here("explain", "curious").stdout.startswith("Claim curious: ")
    assert ask("log", "curious", "--lines", "1")["claim"] == made["id"]


def test_ended_claim_is_explained_by_its_name(ask: Ask, run_here: Run) -> None:
    """When, how and why it ended; of several, the one that ended last."""
    for reason in ("the first is over", "the second is over"):
        made = ask("claim", "1", "--name", "bygone", "--detach")
        ask("release", "bygone", "--reason", reason)
        _wait_for_end(ask, made["id"])
    done = run_here("explain", "bygone")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Claim bygone: ended")
    assert "ago (released): " in done.stdout
    assert "the second is over" in done.stdout
    assert ask("log", "bygone", "--lines", "1")["claim"] == made["id"]
    assert run_here("scale", "bygone", "2").returncode == 1


def test_running_claim_is_kept_and_let_go(ask: Ask, run_here: Run) -> None:
    """For a time, and not at all with 0."""
    holder = ask("claim", "1", "--name", "dear", "--detach")
    _wait_for_phase(ask, holder["id"], "running")
    assert "kept until" in run_here("keep", "dear", "1h").stdout
    assert ask("keep", "dear", "0")["kept_until"] is None


def test_releasing_again_is_no_error(ask: Ask) -> None:
    """By its id, a claim that has ended is found as well."""
    made = ask("claim", "1", "--detach")
    ask("release", made["id"])
    assert ask("release", made["id"])[0]["id"] == made["id"]


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


def test_unreadable_option_leaves_no_claim(ask: Ask, run_here: Run) -> None:
    """Every option is read before anything is requested."""
    assert run_here("claim", "1", "--name", "hasty", "--timeout", "x").returncode == 2
    assert "hasty" not in {claim["name"] for claim in ask("claims", "--ended")}


@pytest.mark.parametrize("shown", ["show_line", "show_running"])
def test_claim_that_could_not_be_shown_is_given_back(
    ask: Ask, run_here: Run, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    """Nobody would know of it."""

    def fail(_view: object) -> None:
        raise Unavailable("Nobody reads this.")

    monkeypatch.setattr(claims, shown, fail)
    run_here("claim", "1", "--name", "unseen", *(["--detach"] if shown == "show_line" else []))
    assert {claim["phase"] for claim in ask("claims") if claim["name"] == "unseen"} <= {"ending"}


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_held_claim_is_given_back_on_a_signal(
    ask: Ask, environment: dict[str, str], signum: signal.Signals
) -> None:
    """It says how to attach, and ends with status 128 and the signal's number."""
    holder = _start("claim", "1", "--name", "held", environment=environment)
    assert holder.stdout is not None
    first, second = holder.stdout.readline(), holder.stdout.readline()
    assert ("held runs with 1 worker" in first, "attach(" in second) == (True, True)
    holder.send_signal(signum)
    holder.communicate(timeout=30)
    assert holder.returncode == 128 + signum
    assert "held" not in {claim["name"] for claim in ask("claims") if claim["phase"] == "running"}


def test_held_claim_that_ends_by_itself_is_told(ask: Ask, environment: dict[str, str]) -> None:
    """With the reason, and status 1."""
    holder = _start("claim", "1", "--name", "taken", environment=environment)
    assert holder.stdout is not None
    holder.stdout.readline()
    ask("release", "taken", "--reason", "needed elsewhere")
    _, err = holder.communicate(timeout=30)
    assert holder.returncode == 1
    assert "taken has ended" in err


def test_followed_events_come_as_they_happen(ask: Ask, environment: dict[str, str]) -> None:
    """Until Ctrl-C."""
    follower = _start("events", "--follow", "--json", environment=environment)
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


def _start(*arguments: str, environment: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "jupyter_gpupool.cli", *arguments],
        env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_until_free(ask: Ask) -> None:
    """What an earlier test gave back is proven free a moment later."""
    deadline = time.monotonic() + 60
    while ask("status")["free"] != 4:
        assert time.monotonic() < deadline, "devices are still held"
        time.sleep(0.05)


def _wait_for_end(ask: Ask, claim_id: str) -> None:
    deadline = time.monotonic() + 30
    while claim_id in {claim["id"] for claim in ask("claims")}:
        assert time.monotonic() < deadline, f"{claim_id} has not ended after 30 s"
        time.sleep(0.05)


def _wait_for_phase(ask: Ask, claim_id: str, phase: str) -> None:
    deadline = time.monotonic() + 30
    while phase not in {claim["phase"] for claim in ask("claims") if claim["id"] == claim_id}:
        assert time.monotonic() < deadline, f"{claim_id} is not {phase} after 30 s"
        time.sleep(0.05)
