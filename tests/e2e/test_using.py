"""A claim in use, against real processes: its kernels, a keep, its logs, why it waits."""

import signal
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from e2e_harness.running_pool import RunningPool, strike
from waiting import eventually

KERNEL = {"host": "h", "boot_id": "b", "pid": 4711, "started": 99, "name": "a.ipynb"}
SILENT_S = 5.0


@pytest.fixture
def claim(pool: RunningPool) -> Iterator[str]:
    """A claim with one worker that runs."""
    claim_id = pool.api.claim(1)
    pool.wait_phase(claim_id, "running")
    yield claim_id
    pool.end(claim_id)


def test_kernels_and_keep_outlive_the_manager(pool: RunningPool, claim: str) -> None:
    """A manager that is killed knows both again; what the kernel does is unknown until told."""
    _attach(pool, claim)
    kept = pool.api.post(f"/claims/{claim}/keep_alive", {"for_s": 600})["kept_until"]
    pool.api.post("/kernels/activity", {"kernels": [{"kernel": "k", "state": "busy"}]})
    assert _kernel(pool, claim)["state"] == "busy"
    assert pool.manager is not None
    strike(pool.manager, signal.SIGKILL)
    pool.start_manager()
    assert (_kernel(pool, claim)["pid"], _kernel(pool, claim)["state"]) == (4711, "unknown")
    assert pool.api.view(claim)["kept_until"] == kept
    pool.wait_joined(pool.agent)


def test_logs_are_read_while_a_claim_runs_and_after(pool: RunningPool) -> None:
    """Scheduler first, then the worker; the same still after its end."""
    claim_id = pool.api.claim(1)
    pool.wait_phase(claim_id, "running")
    [lease] = pool.api.view(claim_id)["leases"]
    running = eventually(lambda: _whole_logs(pool, claim_id), 10, "both have said something")
    pool.end(claim_id)
    ended = _logs(pool, claim_id)
    for logs in (running, ended):
        assert [log["process"] for log in logs] == ["scheduler", lease["id"]]
        assert all(log["lines"] and not log["problem"] for log in logs)
    [last] = _logs(pool, claim_id, process=lease["id"], lines=1)
    assert last["lines"] == ended[1]["lines"][-1:]


def test_silent_agent_costs_a_moment_and_is_named(pool: RunningPool, claim: str) -> None:
    """Nobody waits for an agent that is frozen."""
    assert pool.agent is not None
    strike(pool.agent, signal.SIGSTOP)
    try:
        before_s = time.monotonic()
        logs = _logs(pool, claim)
        took_s = time.monotonic() - before_s
    finally:
        pool.agent.send(signal.SIGCONT)
    assert took_s < SILENT_S + 3
    assert all(log["problem"].startswith("No answer came from") for log in logs)


def test_waiting_claim_is_explained(pool: RunningPool) -> None:
    """Its place, what holds the devices, and how many would do."""
    first = pool.api.claim(4)
    pool.wait_phase(first, "running")
    second = pool.api.claim(1)
    told = pool.api.get(f"/claims/{second}/explanation")
    assert (told["place"], told["free"], told["devices"]) == (1, 0, 4)
    assert told["lines"][1] == "4 devices of the pool would do: 0 free, 4 held by other claims."
    for claim_id in (second, first):
        pool.end(claim_id)


def _attach(pool: RunningPool, claim_id: str) -> None:
    answer = httpx.put(
        f"{pool.api.url}/api/v1/claims/{claim_id}/kernels/k",
        headers={"Authorization": f"Bearer {pool.api.token}"},
        json=KERNEL,
        trust_env=False,
    )
    assert answer.is_success, answer.text


def _kernel(pool: RunningPool, claim_id: str) -> Mapping[str, Any]:
    [kernel] = pool.api.view(claim_id)["kernels"]
    return kernel  # type: ignore[no-any-return]


def _logs(pool: RunningPool, claim_id: str, **query: object) -> list[Mapping[str, Any]]:
    answer = pool.api.get(f"/claims/{claim_id}/logs", **query)
    return answer["processes"]  # type: ignore[no-any-return]


def _whole_logs(pool: RunningPool, claim_id: str) -> list[Mapping[str, Any]]:
    logs = _logs(pool, claim_id)
    return logs if all(log["lines"] for log in logs) else []
