"""The wall clock is set back an hour while claims run: nothing expires early, or never."""

import shutil

import pytest
from e2e_harness.clock import SettableClock
from e2e_harness.devices import SimulatedDevices
from e2e_harness.running_pool import MakePool, RunningPool, Setup
from waiting import stays

HOUR_S = 3600


@pytest.fixture
def clock(folders) -> SettableClock:
    """A clock that the pool's processes see."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the clock")
    return SettableClock(folders())


@pytest.fixture
def shifted(make_pool: MakePool, clock: SettableClock) -> RunningPool:
    """A pool under that clock."""
    return make_pool(SimulatedDevices(2), Setup(environment=clock.environment)).start()


def test_clock_set_back_ends_no_claim_and_keeps_time_limits(
    shifted: RunningPool, clock: SettableClock
) -> None:
    """A running claim runs on, a new one starts, and a time limit of seconds stays one."""
    kept = shifted.api.claim(1)
    shifted.wait_phase(kept, "running")
    limited = shifted.api.claim(1, time_limit_s=8)
    shifted.wait_phase(limited, "running")
    clock.shift(-HOUR_S)
    assert "limit" in shifted.wait_ended(limited, deadline_s=20)
    assert shifted.api.phase(kept) == "running"
    shifted.end(kept)


def test_clock_set_forward_expires_nothing_early(
    shifted: RunningPool, clock: SettableClock
) -> None:
    """A claim of two hours is not over because the clock jumped three."""
    claim_id = shifted.api.claim(1, time_limit_s=2 * HOUR_S)
    shifted.wait_phase(claim_id, "running")
    clock.shift(3 * HOUR_S)
    stays(lambda: shifted.api.phase(claim_id) == "running", 2, "it runs on")
    shifted.end(claim_id)


def test_agents_clock_that_is_off_is_said(make_pool: MakePool, clock: SettableClock) -> None:
    """A host whose clock is an hour behind works, and says that its clock is off."""
    pool = make_pool(SimulatedDevices(1))
    pool.start_manager()
    clock.shift(-HOUR_S)
    pool.start_agent(**clock.environment)
    pool.watch.start()
    claim_id = pool.api.claim(1)
    pool.wait_phase(claim_id, "running")
    assert "clock" in pool.api.get("/hosts")[0]["problem"]
    pool.end(claim_id)
