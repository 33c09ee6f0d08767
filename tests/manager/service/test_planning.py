"""When a scheduling pass is worth its time: thousands of claims may be in line."""

import pytest

from jupyter_gpupool.manager.service import planning
from jupyter_gpupool.pool.claim import Phase


@pytest.fixture
async def long_line(pool, monkeypatch):
    """A line that counts as long, and two free devices, too few for who waits in it."""
    monkeypatch.setattr(planning, "_FEW_CLAIMS", 0)
    await pool.joined("a", 2)
    await pool.claim(3)
    return pool


@pytest.mark.parametrize("terms", [{"least": 3}, {"model": "H200"}, {"memory_bytes": 2**40}])
async def test_claim_that_nothing_free_would_do_for_joins_a_long_line_unplanned(long_line, terms):
    """Why it waits is found out when somebody asks."""
    claim = await long_line.claim(**terms)
    assert long_line.service.waits.of(claim.id) is None
    long_line.time.pass_s(2)
    await long_line.service.waits.refresh()
    assert long_line.service.waits.of(claim.id) is not None


async def test_claim_that_fits_what_is_free_starts_past_a_long_line(long_line):
    """Nobody before it could use the devices."""
    assert (await long_line.claim(2)).phase is Phase.STARTING
