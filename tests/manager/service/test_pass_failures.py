"""A defect in the engine: counted and told, and everything that was decided holds on."""

import httpx
import pytest

from jupyter_gpupool.manager.service import service as service_module
from jupyter_gpupool.manager.service.pass_failures import PassFailures
from jupyter_gpupool.protocol.api import Role


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch):
    """Breaks every pass from now on."""

    def fail(*_: object) -> None:
        raise KeyError("a defect")

    def break_all() -> None:
        monkeypatch.setattr(service_module, "run_pass", fail)

    return break_all


def test_failures_are_news_for_an_hour(manual_clock):
    """Their count stays."""
    clock = manual_clock.clock()
    failures = PassFailures(clock.now)
    assert failures.text == ""
    failures.note(KeyError("x"))
    failures.note(ValueError("y"))
    assert failures.text.startswith("2 of the manager's scheduling passes failed")
    manual_clock.pass_s(3601)
    assert (failures.text, failures.count, failures.why) == ("", 2, "ValueError: y")


async def test_what_was_decided_holds_on(pool, broken):
    """Whoever runs runs, commands work, and the reason of a wait is the last that was known."""
    agent = await pool.joined()
    running, waiting = await pool.claim(2), await pool.claim(1)
    await pool.come_up(agent)
    reason = pool.service.waits.of(waiting.id).reason
    broken()
    await pool.release(await pool.claim(1))
    assert pool.service.failures.count > 0
    assert pool.now(running).phase == "running"
    await pool.service.waits.refresh()
    assert pool.service.waits.of(waiting.id).reason == reason


async def test_explanation_that_fails_keeps_the_last_one(pool):
    """It is tried again a second later."""
    waiting, waits = await pool.claim(1), pool.service.waits
    reason, failures = waits.of(waiting.id).reason, pool.service.failures
    waits._ask = _fail
    waits.take(None)
    pool.time.pass_s(2)
    await waits.refresh()
    assert (waits.of(waiting.id).reason, failures.count) == (reason, 1)


def _fail() -> None:
    raise KeyError("a defect")


async def test_failures_are_seen_by_those_who_can_mend_them(site, broken):
    """In the metrics, in the detail of the health, and by admins in the status."""
    broken()
    async with await site.client() as user, await site.client("root", Role.ADMIN) as admin:
        await user.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        health = (await user.get("/health")).json()
        assert (health["status"], "1 of the manager's" in health["detail"]) == ("ok", True)
        assert "gpupool_failed_passes_total 1.0" in (await user.get("/metrics")).text
        assert await _problems(user) == []
        [told] = await _problems(admin)
    assert "KeyError: 'a defect'" in told


async def _problems(client: httpx.AsyncClient) -> list[str]:
    return (await client.get("/api/v1/status")).json()["problems"]
