"""Claims that nobody uses: warned by the policy's rule, taken when that is over, and never else."""

from datetime import timedelta
from functools import partial

import pytest
from manager_harness.idle_player import IdlePlayer, a_running_claim, apply

from jupyter_gpupool.manager.service import idle_watching
from jupyter_gpupool.manager.service.using import KeepClaim, keep_claim
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol.keeping import Unkept, UnkeptReason

QUEUES = """
[queues.all]
users = ["*"]
"""
RULE = """
[[idle.rules]]
name = "all"
action = "release"
"""
RELEASE = QUEUES + RULE
CHOICE = """
[[idle.rules]]
name = "all"
choice = { actions = ["release"], after = ["10min", "2h"] }
"""
TEAMS = """
[queues.vision]
guarantee = { gpus = 2 }
users = ["bob"]
[queues.others]
users = ["*"]
[scheduling]
grace = "1h"
"""
MINUTE = 60


@pytest.fixture
async def idler(pool):
    """A claim of two devices under the rule of good defaults, which releases."""
    await apply(pool, RELEASE)
    return await a_running_claim(pool)


async def test_idle_claim_is_warned_and_then_ended(idler):
    """At fifteen minutes and at twenty, whatever the report says in between."""
    assert (await idler.rest(14 * MINUTE)).warning is None
    warned = (await idler.rest(MINUTE)).warning
    assert warned.rule == "all"
    assert warned.deadline == idler.pool.time.wall + timedelta(minutes=5)
    assert (await idler.rest(4 * MINUTE)).phase is Phase.RUNNING
    ended = await idler.rest(MINUTE)
    assert (ended.phase, ended.end) == (Phase.ENDING, EndKind.RECLAIMED)


async def test_its_user_reads_what_was_seen_of_which_devices(idler):
    """In one sentence, with the rule and what comes of it."""
    warned = (await idler.rest(15 * MINUTE)).warning
    assert warned.reason == (
        "Your 2 Sim 16 have been idle for 15 min (no tasks, no calls, kernel at rest, GPU 0 %,"
        ' 31 GiB held). By rule "all" of revision 1 of the policy the claim ends then, and its'
        " results are lost."
    )


async def test_each_warning_and_taking_is_an_event_with_its_evidence(idler):
    """As typed fields: rule, revision, window, signals, who was waiting."""
    await idler.rest(20 * MINUTE)
    events = [event for change in idler.pool.store.commits for event in change.events]
    told = [event for event in events if event.evidence is not None]
    assert [event.kind for event in told] == [EventKind.CLAIM_CHANGED, EventKind.CLAIM_ENDING]
    evidence = told[-1].evidence
    assert (evidence.rule, evidence.revision, evidence.ground) == ("all", 1, Ground.IDLE)
    assert (evidence.action, evidence.lasted_ms) == (OnIdle.RELEASE, 20 * MINUTE * 1000)
    assert Signal.TASKS in evidence.quiet
    assert (evidence.gpu, evidence.wanted_by) == (0, ())
    assert "was ended" in idler.claim.reason


@pytest.mark.parametrize("signal", [Signal.TASKS, Signal.CALLS, Signal.MEMORY])
async def test_activity_clears_the_warning(idler, signal):
    """And the time begins anew."""
    assert (await idler.rest(16 * MINUTE)).warning is not None
    cleared = await idler.rest(10, signal)
    assert cleared.warning is None
    assert cleared.reason == "It is used again."
    assert (await idler.rest(14 * MINUTE)).warning is None


async def test_user_s_own_wish_holds_within_the_bounds(pool):
    """Sooner, and released instead of hibernated, for the policy lets users choose that."""
    await apply(pool, QUEUES + CHOICE)
    wish = {"on_idle": OnIdle.RELEASE, "idle_after": timedelta(minutes=10)}
    idler = await a_running_claim(pool, **wish)
    warned = (await idler.rest(5 * MINUTE)).warning
    assert warned.evidence.action is OnIdle.RELEASE
    assert (await idler.rest(5 * MINUTE)).end is EndKind.RECLAIMED


async def test_busy_device_is_never_idle(idler):
    """Whatever its scheduler says."""
    assert (await idler.rest(60 * MINUTE, gpu_peak=900, gpu_mean=500)).warning is None


@pytest.mark.parametrize("unknown", [{"gpu_peak": None, "gpu_mean": None}, {"quiet": frozenset()}])
async def test_what_nobody_can_tell_is_never_idle(idler, unknown):
    """Neither a device without figures nor a scheduler without a word."""
    assert (await idler.rest(60 * MINUTE, **unknown)).warning is None


async def test_silent_agent_has_nothing_taken(idler):
    """Not even what it was warned of; when it speaks again, the time begins anew."""
    await idler.rest(18 * MINUTE)
    await idler.pool.silent(idler.agent)
    idler.pool.time.pass_s(10 * MINUTE)
    idler.seen_s = idler.pool.time.monotonic_s
    await idler.pool.join(idler.agent)
    back = await idler.rest(10)
    assert (back.phase, back.warning) == (Phase.RUNNING, None)
    assert (await idler.rest(14 * MINUTE)).warning is None


async def test_what_is_due_between_two_reports_is_asked_for(idler):
    """At its own moment: the host is asked to report, and nobody is polled before."""
    await idler.rest(14 * MINUTE + 55)
    asked = []
    idler.pool.service.links.look = asked.append
    due_s = idler.pool.service.deadlines.idle[idler.claim_id]
    assert due_s - idler.pool.time.monotonic_s == pytest.approx(5, abs=0.1)
    await idler.pool.pass_s(4.9)
    assert asked == []
    await idler.pool.pass_s(0.2)
    assert asked == [idler.agent.host_id]
    await idler.tell()
    assert idler.claim.warning is not None


async def test_a_clock_that_is_set_changes_nothing(idler):
    """Neither idleness nor notice is measured by the calendar."""
    await idler.rest(10 * MINUTE)
    idler.pool.time.wall += timedelta(hours=3)
    assert (await idler.rest(4 * MINUTE)).warning is None
    assert (await idler.rest(MINUTE)).warning is not None
    idler.pool.time.wall -= timedelta(hours=5)
    assert (await idler.rest(4 * MINUTE)).phase is Phase.RUNNING
    assert (await idler.rest(MINUTE)).phase is Phase.ENDING


async def test_claim_that_needs_the_fewest_shrinks_alone(pool):
    """Where the rule says so, the others go on, and it may grow again when its user asks."""
    await apply(pool, RELEASE.replace("release", "shrink"))
    idler = await a_running_claim(pool, devices=3, least=1)
    shrunk = await idler.rest(20 * MINUTE)
    assert shrunk.phase is Phase.RUNNING
    assert (shrunk.bounds.minimum, shrunk.bounds.maximum) == (1, 1)
    assert shrunk.warning is None


@pytest.mark.parametrize(("otherwise", "is_warned"), [("release", True), ("leave", False)])
async def test_where_nothing_can_be_kept_the_policy_decides(pool, otherwise, is_warned):
    """Its scheduler is asked once it is warned; what comes of that has a warning of its own."""
    rule = RELEASE.replace("release", "hibernate")
    await apply(pool, f'{rule}otherwise = "{otherwise}"\n')
    idler = await a_running_claim(pool)
    idler.agent.unkept[idler.claim_id] = (Unkept(key="x", reason=UnkeptReason.ACTOR),)
    hopeful = (await idler.rest(15 * MINUTE)).warning
    assert hopeful.evidence.action is OnIdle.HIBERNATE
    await pool.come_up(idler.agent)
    warned = (await idler.rest(MINUTE)).warning
    assert (warned is not None) is is_warned
    assert warned is None or "results are lost" in warned.reason
    assert (await idler.rest(4 * MINUTE)).phase is Phase.RUNNING


async def test_idle_claim_hibernates_and_its_evidence_is_kept(pool):
    """Where the rule says so; the event tells why, as with any other reclaim."""
    await apply(pool, RELEASE.replace("release", "hibernate"))
    idler = await a_running_claim(pool)
    idler.agent.results[idler.claim_id] = 3
    assert (await idler.rest(20 * MINUTE)).phase is Phase.HIBERNATING
    [event] = [e for e in pool.service.hub.since(0) if e.kind is EventKind.CLAIM_HIBERNATING]
    assert event.evidence.rule == "all"
    await pool.come_up(idler.agent)
    await pool.wind_down(idler.agent)
    kept = idler.claim
    assert (kept.phase, kept.hibernation.results) == (Phase.HIBERNATED, 3)
    assert pool.leases(kept) == []


async def test_warning_goes_with_the_rule(idler):
    """Another policy takes nothing that it does not ask for."""
    assert (await idler.rest(16 * MINUTE)).warning is not None
    await apply(idler.pool, QUEUES)
    cleared = await idler.rest(10)
    assert cleared.warning is None
    assert (await idler.rest(10 * MINUTE)).phase is Phase.RUNNING


async def test_stricter_policy_surprises_nobody_who_was_warned(idler):
    """What was announced comes no sooner, however short the new rule's times are."""
    await idler.rest(15 * MINUTE)
    deadline = idler.claim.warning.deadline
    await apply(idler.pool, RELEASE + 'warn = "1min"\nafter = "3min"\n')
    assert (await idler.rest(4 * MINUTE + 50)).warning.deadline >= deadline
    assert idler.claim.phase is Phase.RUNNING
    assert (await idler.rest(10)).phase is Phase.ENDING


async def test_only_what_is_wanted_is_taken(pool):
    """Where the rule says so; who is waiting comes from the last pass."""
    nothing_for_others = "[scheduling]\nreclaim = false\n"
    await apply(pool, QUEUES + nothing_for_others + RULE + "only_when_wanted = true\n")
    idler = await a_running_claim(pool)
    assert (await idler.rest(60 * MINUTE)).warning is None
    bob = await pool.claim(1, user="bob")
    warned = (await idler.rest(10)).warning
    assert "while 1 claim waits for it" in warned.reason
    assert warned.evidence.wanted_by == (bob.id,)
    await pool.release(bob)
    assert (await idler.rest(10)).warning is None


async def test_another_warning_comes_first(idler):
    """One claim shows one warning, and what others need is sooner."""
    await apply(idler.pool, TEAMS + RULE)
    await idler.pool.claim(2, user="bob")
    assert idler.claim.warning.evidence is None
    assert (await idler.rest(16 * MINUTE)).warning.evidence is None


async def test_others_take_an_idle_claim_before_a_busy_one(pool):
    """And at once, for nobody is interrupted."""
    await apply(pool, TEAMS.replace("gpus = 2", "gpus = 1") + RULE)
    agent = await pool.joined("a", 2)
    used, forgotten = await pool.claim(1), await pool.claim(1)
    await pool.come_up(agent)
    await IdlePlayer(pool, agent, forgotten.id).rest(15 * MINUTE)
    await pool.claim(1, user="bob")
    assert pool.now(forgotten).phase is Phase.HIBERNATING
    assert pool.now(used).warning is None


async def test_keep_postpones_what_is_idle(idler):
    """Within the rule's bounds, and it clears the warning."""
    await idler.rest(16 * MINUTE)
    command = KeepClaim(
        caller=idler.pool.user("ann"), claim_id=idler.claim_id, duration=timedelta(hours=1)
    )
    await idler.pool.service.execute(partial(keep_claim, command=command))
    assert idler.claim.warning is None
    assert (await idler.rest(59 * MINUTE)).warning is None
    assert (await idler.rest(2 * MINUTE)).warning is not None


async def test_claim_that_cannot_be_judged_cuts_no_host_off(idler, monkeypatch, caplog):
    """A defect of ours takes nothing, and all else of the report counts."""

    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(idle_watching, "advance", fails)
    assert (await idler.rest(30 * MINUTE)).warning is None
    assert "could not be judged" in caplog.text
    await idler.pool.release(idler.claim)
    await idler.pool.wind_down(idler.agent)
    assert idler.claim.phase is Phase.ENDED


async def test_watch_is_over_with_its_claim(idler):
    """Nothing of a claim that has ended is kept."""
    await idler.rest(20 * MINUTE)
    assert idler.pool.service.books.watches == {}
    assert idler.pool.service.deadlines.idle == {}
