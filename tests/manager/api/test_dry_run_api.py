"""A policy's rules tried on what was seen: counted, and nothing is changed by it."""

from datetime import timedelta

import pytest

from jupyter_gpupool.manager.api import dry_run
from jupyter_gpupool.manager.service.records import RecordedUse
from jupyter_gpupool.pool.idle_match import Subject
from jupyter_gpupool.pool.signals import Sample, Signal
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.scheduling.idle_dry_run import Recorded

POLICY = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "all"
action = "release"
"""
HOUR_MS = 3_600_000
QUIET = frozenset(Signal) - {Signal.GPU}
SUBJECT = Subject(user="ann", queues=("all",), models=("A100",), priority="normal", devices=2000)


async def rest(site, claim: str, hours: int, ago: timedelta) -> None:
    """A claim of two devices that rested for so long, a while ago."""

    def keep(unit) -> None:
        for hour in range(hours):
            at = unit.now - ago + timedelta(hours=hour)
            sample = Sample(
                life="boot",
                begin_ms=hour * HOUR_MS,
                end_ms=(hour + 1) * HOUR_MS,
                at=at,
                quiet=QUIET,
                gpu_peak=0,
                gpu_mean=0,
                held_bytes=2**30,
                orphaned=False,
            )
            recorded = Recorded(sample=sample, subject=SUBJECT)
            unit.new_recorded.append(RecordedUse(claim_id=claim, recorded=recorded))

    await site.parts.service.execute(keep)


@pytest.fixture
async def try_policy(site):
    """What an admin is told of a document."""

    async def ask(source=POLICY, **more):
        async with await site.client("root", Role.ADMIN) as client:
            answer = await client.post("/api/v1/policy/dry-run", json={"source": source} | more)
        return answer.json()

    return ask


async def test_what_would_have_been_taken_is_told(site, try_policy):
    """From whom, when, why, and what others would have had of it."""
    await rest(site, "c-1", 3, ago=timedelta(days=1))
    told = await try_policy()
    assert (told["claims"], told["taken"], told["hurt"], told["warned"]) == (1, 1, 0, 1)
    [taking] = told["takings"]
    assert (taking["claim"], taking["owner"], taking["queue"]) == ("c-1", "ann", "all")
    assert (taking["rule"], taking["ground"], taking["action"]) == ("all", "idle", "release")
    assert taking["devices"] == 2
    assert taking["won_gpu_hours"] == pytest.approx(2 * (3 - 1 / 3), abs=0.1)
    assert "Idle for 20 min" in taking["reason"]


async def test_only_the_days_that_are_asked_for_count(site, try_policy):
    """Older ones are still there for another question."""
    await rest(site, "c-1", 3, ago=timedelta(days=5))
    assert (await try_policy(days=1))["claims"] == 0
    assert (await try_policy(days=6))["claims"] == 1


async def test_trying_a_policy_changes_nothing(site, try_policy):
    """No revision, no event, no warning."""
    await rest(site, "c-1", 3, ago=timedelta(days=1))
    before = (site.parts.service.books.policy, site.parts.service.books.seq)
    await try_policy()
    assert (site.parts.service.books.policy, site.parts.service.books.seq) == before


async def test_document_that_is_refused_is_not_tried(try_policy):
    """Its line and key are named, as by a check."""
    refused = await try_policy(POLICY + 'action = "burn"\n')
    assert refused["status"] == 422


async def test_nobody_waits_for_ever(site, try_policy, monkeypatch):
    """What there was no time for is counted."""
    monkeypatch.setattr(dry_run, "_WITHIN_S", -1.0)
    for claim in ("c-1", "c-2", "c-3"):
        await rest(site, claim, 1, ago=timedelta(days=1))
    told = await try_policy()
    assert (told["claims"], told["left_out"]) == (1, 2)
