"""Commands about claims against a real pool: made, held, changed, told of and given back."""

import json
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from waiting import eventually

from jupyter_gpupool.cli import claims
from jupyter_gpupool.pool.errors import Unavailable

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("released")]
Ask = Callable[..., Any]
Run = Callable[..., Any]
Begin = Callable[..., "subprocess.Popen[str]"]


def test_detached_claim_hibernates_and_resumes(ask: Ask, until_phase: Ask) -> None:
    """By its name; its devices are given back in between."""
    made = ask("claim", "1", "--detach", "--name", "sleeper")
    until_phase("sleeper", "running", 60)
    assert ask("hibernate", "sleeper", "--reason", "lunch")["id"] == made["id"]
    assert until_phase("sleeper", "hibernated", 60)["leases"] == []
    assert ask("resume", "sleeper")["phase"] in ("resuming", "starting", "running")
    until_phase("sleeper", "running", 60)
    ask("release", "sleeper")


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


def test_part_of_a_device_is_claimed_and_shown(
    ask: Ask, run_here: Run, until_free: Callable[[], None], until_phase: Ask
) -> None:
    """By its share or by its memory; what is left of the device is said."""
    half = ask("claim", "0.5", "--detach")
    quarter = ask("claim", "1", "--gpu-memory", "4GiB", "--detach")
    for claim in (half, quarter):
        until_phase(claim["id"], "running")
    assert ask("explain", quarter["id"])["phase"] == "running"
    [shared] = [each for each in ask("devices") if each["leased"]]
    assert (sorted(each["share"] for each in shared["holders"]), shared["left"]) == (
        [0.25, 0.5],
        0.25,
    )
    table = " ".join(run_here("devices").stdout.split())
    assert "0.25 of it free" in table
    ask("release", "--all")
    until_free()


def test_worker_with_several_devices_is_claimed(ask: Ask, until_free: Callable[[], None]) -> None:
    """GPUS counts devices: four of them are two workers with two each."""
    claim = ask("claim", "4", "--gpus-per-worker", "2", "--detach")
    assert claim["workers"] == {"min": 2, "max": 2}
    assert [len(lease["devices"]) for lease in claim["leases"]] == [2, 2]
    assert ask("estimate", "1", "--gpu-memory", "40GiB")["never"]
    ask("release", "--all")
    until_free()


def test_claim_goes_to_the_queue_and_class_that_are_named(ask: Ask, run_here: Run) -> None:
    """As in Python; a queue that is not there is refused in one line."""
    claim = ask("claim", "1", "--queue", "default", "--priority", "batch", "--detach", "--json")
    assert (claim["queue"], claim["priority"]) == ("default", "batch")
    ask("release", claim["id"], "--json")
    refused = run_here("claim", "1", "--queue", "nobodys", "--detach")
    assert refused.returncode != 0
    assert "default" in refused.stderr


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
        _until_ended(ask, made["id"])
    done = run_here("explain", "bygone")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Claim bygone: ended")
    assert "ago (released): " in done.stdout
    assert "the second is over" in done.stdout
    assert ask("log", "bygone", "--lines", "1")["claim"] == made["id"]
    assert run_here("scale", "bygone", "2").returncode == 1


def test_running_claim_is_kept_and_let_go(ask: Ask, run_here: Run, until_phase: Ask) -> None:
    """For a time, and not at all with 0."""
    holder = ask("claim", "1", "--name", "dear", "--detach")
    until_phase(holder["id"], "running")
    assert "kept until" in run_here("keep", "dear", "1h").stdout
    assert ask("keep", "dear", "0")["kept_until"] is None


def test_releasing_again_is_no_error(ask: Ask) -> None:
    """By its id, a claim that has ended is found as well."""
    made = ask("claim", "1", "--detach")
    ask("release", made["id"])
    assert ask("release", made["id"])[0]["id"] == made["id"]


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
    ask: Ask, begin: Begin, signum: signal.Signals
) -> None:
    """It says how to attach, and ends with status 128 and the signal's number."""
    holder = begin("claim", "1", "--name", "held")
    assert holder.stdout is not None
    first, second = holder.stdout.readline(), holder.stdout.readline()
    assert ("held runs with 1 worker" in first, "attach(" in second) == (True, True)
    holder.send_signal(signum)
    holder.communicate(timeout=30)
    assert holder.returncode == 128 + signum
    assert "held" not in {claim["name"] for claim in ask("claims") if claim["phase"] == "running"}


def test_held_claim_that_ends_by_itself_is_told(ask: Ask, begin: Begin) -> None:
    """With the reason, and status 1."""
    holder = begin("claim", "1", "--name", "taken")
    assert holder.stdout is not None
    holder.stdout.readline()
    ask("release", "taken", "--reason", "needed elsewhere")
    _, err = holder.communicate(timeout=30)
    assert holder.returncode == 1
    assert "taken has ended" in err


def _until_ended(ask: Ask, claim_id: str) -> None:
    eventually(lambda: claim_id not in {claim["id"] for claim in ask("claims")}, 30, "it has ended")
