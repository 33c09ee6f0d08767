"""Claims that nobody uses go back by themselves; those that work stay, whoever is killed."""

import signal
import time
from datetime import datetime

import pytest
from e2e_harness.running_pool import RunningPool, Setup
from waiting import eventually

POLICY = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "orphans"
match = { users = ["ann"] }
after = "never"
orphan = { after = "60s", action = "release" }
[[idle.rules]]
name = "quick"
signals = ["tasks", "calls", "gpu", "memory"]
warn = "0s"
after = "60s"
action = "release"
orphan = { after = "never" }
"""


@pytest.fixture(scope="module")
def pool(make_pool, devices, folders) -> RunningPool:
    """A pool of four devices whose rules are as quick as rules may be."""
    policy = folders() / "policy.toml"
    policy.write_text(POLICY)
    return make_pool(devices(4), Setup(manager_options=(f"--policy={policy}",))).start()


def test_idle_claim_is_warned_and_ends_at_its_deadline(pool: RunningPool) -> None:
    """Though the manager is killed between the two; a claim that computes is never even warned.

    And a claim whose script was killed without a word goes back in the same way.
    """
    ann = pool.api_of("ann")
    script = pool.user(ann)
    orphan = script.ask("claim", deadline_s=90, gpus=1)
    eventually(lambda: ann.view(orphan).get("kernels"), 10, "the script has said that it uses it")
    script.process.send(signal.SIGKILL)
    bob = pool.api_of("bob")
    user = pool.user(bob)
    busy = user.ask("claim", deadline_s=90, gpus=1)
    user.tell("submit", claim_id=busy, tasks=1, seconds=240)
    idle = bob.claim(2)
    pool.wait_phase(idle, "running")
    warned = eventually(lambda: bob.view(idle).get("warning"), 30, "it is warned")
    assert warned["rule"] == "quick"
    assert "no tasks" in warned["reason"]
    assert warned["evidence"]["action"] == "release"
    pool.manager.send(signal.SIGKILL)
    assert pool.manager.wait_gone(5)
    pool.start_manager()
    told = [warned["deadline"]]

    def is_over() -> bool:
        view = bob.view(idle)
        told.append((view.get("warning") or {}).get("deadline") or told[-1])
        return view.get("phase") == "ended"

    # A machine that is too busy to look puts it off; nothing ever makes it sooner.
    eventually(is_over, 180, "it ends")
    assert told == sorted(told)
    over, left_s = bob.view(idle), _seconds_after(told[-1])
    assert over["end"] == "reclaimed"
    assert "idle for" in over["reason"]
    assert -1 <= left_s <= 10
    assert bob.view(busy)["phase"] == "running"
    assert bob.view(busy)["warning"] is None
    events = [event for event in bob.get("/events", claim=idle) if event["evidence"]]
    assert {event["evidence"]["rule"] for event in events} == {"quick"}
    assert (events[0]["kind"], events[-1]["kind"]) == ("claim.changed", "claim.ending")
    eventually(lambda: ann.view(orphan).get("phase") == "ended", 120, "the orphan ends")
    assert "neither kernel nor client" in ann.view(orphan)["reason"]
    pool.end(busy)


def _seconds_after(moment: str) -> float:
    return time.time() - datetime.fromisoformat(moment).timestamp()
