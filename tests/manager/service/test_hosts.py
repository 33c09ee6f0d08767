"""Hosts that report, fall silent, are lost and come back, in virtual time."""

from datetime import timedelta
from functools import partial

import pytest
from cryptography.fernet import Fernet

from jupyter_gpupool.manager.service import timer
from jupyter_gpupool.manager.service.forgetting import forget_old
from jupyter_gpupool.manager.service.hosts import HostSaid, host_said
from jupyter_gpupool.manager.service.tokens import MakeToken, make_token
from jupyter_gpupool.manager.store.sealing import Seal
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.device import DeviceState, Health
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.link import ProcessPhase


async def test_silent_host_keeps_its_leases(pool):
    """What runs there is assumed to run on; nothing new is granted there."""
    agent = await pool.joined()
    claim = await pool.claim(1)
    await pool.come_up(agent)
    await pool.silent(agent)
    waiting = await pool.claim(1)
    assert (pool.now(claim).phase, waiting.phase) == (Phase.RUNNING, Phase.PENDING)


async def test_host_is_lost_after_its_silence(pool):
    """Thirty seconds after its link broke, and not before."""
    agent = await pool.joined()
    await pool.silent(agent)
    await pool.pass_s(29)
    assert pool.service.books.hosts[agent.host_id].phase is HostPhase.SILENT
    await pool.pass_s(1)
    assert pool.service.books.hosts[agent.host_id].phase is HostPhase.LOST


async def test_claim_fails_with_its_schedulers_host(pool):
    """The reason names the host, and nothing is left to wait for."""
    agent = await pool.joined("gn1")
    claim = await pool.claim(1)
    await pool.come_up(agent)
    await pool.lost(agent)
    ended = pool.now(claim)
    assert (ended.phase, ended.end) == (Phase.ENDED, EndKind.FAILED)
    assert ended.reason.startswith("Scheduler lost: Host gn1 is lost")


async def test_claim_goes_on_without_a_lost_workers_host(pool):
    """Its scheduler is elsewhere: fewer workers, same claim."""
    holder, worker = await pool.joined("holder", 0, durable=True), await pool.joined("gn1", 1)
    claim = await pool.claim(1)
    await pool.come_up(holder, worker)
    await pool.lost(worker)
    assert (pool.now(claim).phase, pool.leases(claim)) == (Phase.RUNNING, [])


async def test_lost_workers_are_replaced(pool):
    """The next pass grants what is missing, on another host."""
    holder, first = await pool.joined("holder", 0, durable=True), await pool.joined("gn1", 1)
    claim = await pool.claim(1)
    await pool.come_up(holder, first)
    await pool.joined("gn2", 1)
    await pool.lost(first)
    assert [lease.host_id for lease in pool.leases(claim)] == ["gn2"]


async def test_device_of_a_returned_host_is_not_free_before_its_worker_is_gone(pool):
    """The lease was given up, but its process may still be there."""
    holder, agent = await pool.joined("holder", 0, durable=True), await pool.joined("gn1", 1)
    first = await pool.claim(1)
    await pool.come_up(holder, agent)
    await pool.lost(agent)
    await pool.release(first)
    second = await pool.claim(1)
    await pool.join(agent)
    assert pool.now(second).phase is Phase.PENDING
    await pool.wind_down(agent)
    assert pool.now(second).phase is Phase.STARTING


async def test_dead_scheduler_ends_a_running_claim(pool):
    """Failed, with the scheduler's last lines."""
    agent = await pool.joined()
    claim = await pool.claim(1)
    await pool.come_up(agent)
    agent.schedulers[claim.id] = ProcessPhase.FAILED
    agent.problems[claim.id] = "Killed by signal 9."
    await pool.say(agent)
    assert pool.now(claim).reason == "Scheduler lost: Killed by signal 9."
    assert pool.now(claim).phase is Phase.ENDING


async def test_scheduler_replaced_behind_our_back_is_lost(pool):
    """Another process knows nothing of the first one's results."""
    agent = await pool.joined()
    claim = await pool.claim(1)
    await pool.come_up(agent)
    report = agent.report()
    other = report.schedulers[0].model_copy(update={"address": "tls://10.0.0.1:9"})
    agent.report = lambda: report.model_copy(update={"schedulers": (other,)})
    await pool.say(agent)
    assert pool.now(claim).end is EndKind.FAILED


async def test_three_failed_starts_fail_the_claim(pool):
    """Twice it waits again and gets a new start; the third time it is over."""
    agent = await pool.joined()
    claim = await pool.claim(1)
    phases = []
    for _ in range(3):
        await pool.make_so(agent)
        agent.schedulers[claim.id] = ProcessPhase.FAILED
        agent.problems[claim.id] = "ImportError: no module named dask_cuda"
        await pool.say(agent)
        phases.append(pool.now(claim).phase)
        await pool.wind_down(agent)
    assert phases == [Phase.STARTING, Phase.STARTING, Phase.ENDING]
    assert "no module named dask_cuda" in pool.now(claim).reason


async def test_worker_that_fails_below_the_minimum_fails_the_start(pool):
    """The gang is whole or it does not start."""
    agent = await pool.joined(devices=2)
    claim = await pool.claim(2)
    await pool.make_so(agent)
    _fail(agent, pool.leases(claim)[0].id)
    await pool.say(agent)
    assert pool.now(claim).failed_starts == 1


async def test_failed_worker_of_a_running_claim_is_replaced(pool):
    """The claim is told why, and gets another device."""
    agent = await pool.joined(devices=2)
    claim = await pool.claim(1)
    await pool.come_up(agent)
    failed = pool.leases(claim)[0]
    _fail(agent, failed.id)
    await pool.say(agent)
    assert "out of memory" in pool.service.hub.since(0)[-2].reason
    assert {x.id: x.phase for x in pool.leases(claim)}[failed.id] is LeasePhase.ENDING
    assert len(pool.leases(claim)) == 2


async def test_claim_whose_workers_keep_failing_gets_no_more_for_a_while(pool):
    """Three given up within five minutes are enough; after that it may try again."""
    agent = await pool.joined(devices=9)
    claim = await pool.claim(1)
    for _ in range(3):
        await pool.come_up(agent)
        [_fail(agent, x.id) for x in pool.leases(claim) if x.phase is LeasePhase.RUNNING]
        await pool.say(agent)
        await pool.wind_down(agent)
    assert pool.leases(claim) == []
    await pool.pass_s(301)
    assert len(pool.leases(claim)) == 1


async def test_retired_worker_gives_its_device_back(pool):
    """Its lease ends once the device is proven free."""
    agent = await pool.joined(devices=2)
    claim = await pool.claim(2)
    await pool.come_up(agent)
    await pool.scale(claim, 1, 1)
    retired = pool.leases(claim)[0].id
    agent.workers[retired] = ProcessPhase.RETIRED
    await pool.say(agent)
    await pool.wind_down(agent)
    assert retired not in [lease.id for lease in pool.leases(claim)]
    assert pool.desired(agent).claims[0].scheduler.keep_workers is None


async def test_quarantined_device_is_told_of_and_not_granted(pool):
    """Both ways: when it comes, and when it is gone."""
    agent = await pool.joined(devices=1)
    uuid = agent.devices[0].uuid
    agent.states[uuid] = DeviceState(health=Health.QUARANTINED, problem="ECC error.")
    await pool.say(agent)
    claim = await pool.claim(1)
    assert claim.phase is Phase.PENDING
    agent.states.clear()
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.STARTING
    kinds = [event.kind for event in pool.service.hub.since(0)]
    assert EventKind.DEVICE_QUARANTINED in kinds
    assert EventKind.DEVICE_CLEARED in kinds


@pytest.mark.parametrize("state", [DeviceState(held_elsewhere=True), DeviceState(in_use_by=("l",))])
async def test_device_in_other_hands_is_not_granted(pool, state):
    """Held by another pool, or still in use by an old lease."""
    agent = pool.host("a", 1)
    agent.states[agent.devices[0].uuid] = state
    await pool.join(agent)
    assert (await pool.claim(1)).phase is Phase.PENDING


async def test_device_named_by_two_hosts_is_leased_once(pool):
    """Whatever hosts say, one device is one lease."""
    first, second = pool.host("a", 1), pool.host("b", 1)
    second.devices = first.devices
    await pool.join(first)
    await pool.join(second)
    claims = [await pool.claim(1), await pool.claim(1)]
    assert [claim.phase for claim in claims] == [Phase.STARTING, Phase.PENDING]


async def test_manager_that_was_away_gives_silent_hosts_their_grace(pool):
    """A stopped manager hears nobody: that is not the hosts' fault."""
    agent = await pool.joined()
    await pool.silent(agent)
    pool.time.pass_s(120)
    pool.service.deadlines.postpone_losses(pool.time.monotonic_s)
    await pool.pass_s(5)
    assert pool.service.books.hosts[agent.host_id].phase is HostPhase.SILENT


async def test_late_word_of_a_lost_host_changes_nothing(pool):
    """Only a new connection brings it back."""
    agent = await pool.joined()
    await pool.lost(agent)
    await pool.say(agent)
    assert pool.service.books.hosts[agent.host_id].phase is HostPhase.LOST


async def test_link_that_breaks_while_the_disk_is_full_is_not_forgotten(pool):
    """The host falls silent as soon as that can be written, and is lost in time."""
    agent = await pool.joined()
    pool.store.broken = True
    pool.service.link_broke(agent.host_id)
    await pool.pass_s(60)
    assert pool.service.books.hosts[agent.host_id].phase is HostPhase.CONNECTED
    pool.store.broken = False
    await pool.pass_s(5)
    assert pool.service.books.hosts[agent.host_id].phase is HostPhase.SILENT
    await pool.pass_s(31)
    assert pool.service.books.hosts[agent.host_id].phase is HostPhase.LOST


async def test_defect_in_what_is_due_stops_nothing_else(pool, monkeypatch):
    """One broken command must not make every claim immortal."""

    def break_down(unit, host_id):
        raise ZeroDivisionError

    monkeypatch.setattr(timer, "host_lost", break_down)
    agent = await pool.joined()
    claim = await pool.claim(1, time_limit=timedelta(minutes=1))
    await pool.silent(agent)
    await pool.pass_s(61)
    assert pool.now(claim).end is EndKind.EXPIRED


@pytest.mark.parametrize("devices", [1, 2, 4])
async def test_broken_host_fails_no_claim_while_another_works(pool, devices):
    """However well it fits, a claim tries it once."""
    bad, good = await pool.joined("bad", devices), await pool.joined("good", 8)
    claim = await pool.claim(1)
    await pool.make_so(bad)
    bad.schedulers[claim.id] = ProcessPhase.FAILED
    await pool.say(bad)
    await pool.wind_down(bad)
    await pool.come_up(good)
    assert (pool.now(claim).phase, pool.now(claim).scheduler.host_id) == (Phase.RUNNING, "good")


async def test_host_that_cannot_start_gets_no_claim(pool):
    """Its devices are free, and of no use."""
    agent = await pool.joined()
    broken = agent.report().model_copy(update={"can_start": False, "problem": "No space."})
    agent.report = lambda: broken
    await pool.say(agent)
    assert (await pool.claim(1)).phase is Phase.PENDING


async def test_start_that_hangs_has_failed(pool):
    """A scheduler that never listens does not hold its device for ever."""
    agent = await pool.joined()
    claim = await pool.claim(1)
    await pool.make_so(agent)
    await pool.pass_s(119)
    assert pool.now(claim).failed_starts == 0
    await pool.pass_s(1)
    assert pool.now(claim).failed_starts == 1
    told = [event.reason for event in pool.service.hub.since(0)]
    assert "It did not start within 2 min: its scheduler did not listen." in told


async def test_cancelled_claim_ends_when_its_last_trace_is_lost(pool):
    """A failed start left a process on a host that then dies."""
    agent = await pool.joined("a", 1)
    claim = await pool.claim(1)
    await pool.make_so(agent)
    agent.schedulers[claim.id] = ProcessPhase.FAILED
    await pool.say(agent)
    await pool.release(claim)
    agent.make_so(pool.desired(agent))
    agent.workers.clear()
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.ENDING
    await pool.lost(agent)
    assert pool.now(claim).phase is Phase.ENDED


async def test_leased_device_that_is_not_well_is_told_to_its_claim(pool):
    """Told alone: the claim runs on."""
    agent = await pool.joined(devices=1)
    claim = await pool.claim(1)
    await pool.come_up(agent)
    uuid = agent.devices[0].uuid
    agent.states[uuid] = DeviceState(health=Health.LOST, problem="It fell off the bus.")
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.RUNNING
    assert pool.now(claim).reason == f"Device {uuid} of a: It fell off the bus."


async def test_worker_that_survives_its_end_is_told(pool):
    """The user learns why the device does not come free."""
    agent = await pool.joined(devices=2)
    claim = await pool.claim(1)
    await pool.come_up(agent)
    failed = pool.leases(claim)[0]
    _fail(agent, failed.id)
    await pool.say(agent)
    agent.make_so(pool.desired(agent))
    agent.problems[failed.id] = "It survives SIGKILL."
    await pool.say(agent)
    assert pool.now(claim).reason.startswith("A worker that has to go is still there: It survives")


async def test_worker_on_another_host_retires_by_its_schedulers_word(pool):
    """The worker's own agent cannot know; it stays retiring until it is done, then it ends."""
    holder, agent = await pool.joined("holder", 0, durable=True), await pool.joined("gn1", 2)
    claim = await pool.claim(2)
    await pool.come_up(holder, agent)
    await pool.scale(claim, 1, 1)
    leaving = pool.leases(claim)[0].id
    await _scheduler_says(pool, holder, retiring=(leaving,))
    await pool.say(agent)
    phases = {lease.id: lease.phase for lease in pool.leases(claim)}
    assert phases[leaving] is LeasePhase.RETIRING
    told = {worker.lease_id: worker.retire for worker in pool.desired(agent).claims[0].workers}
    assert [lease_id for lease_id, retires in told.items() if retires] == [leaving]
    await _scheduler_says(pool, holder, retired=(leaving,))
    assert {x.id: x.phase for x in pool.leases(claim)}[leaving] is LeasePhase.ENDING


async def test_long_lost_host_and_void_token_are_forgotten(pool):
    """Neither tables nor memory grow with every Slurm job."""
    agent = await pool.joined()
    made = MakeToken(
        caller=pool.user("root", Role.ADMIN),
        user="ann",
        role=Role.USER,
        lifetime=timedelta(hours=1),
    )
    seal = Seal(Fernet.generate_key())
    await pool.service.execute(partial(make_token, command=made, seal=seal))
    await pool.lost(agent)
    await pool.pass_s(31 * 86_400)
    await pool.service.execute(forget_old)
    books = pool.service.books
    assert (books.hosts, books.tokens, books.tokens_by_digest, books.users) == ({}, {}, {}, {})
    assert pool.store.commits[-1].gone_hosts == (agent.host_id,)


async def _scheduler_says(pool, agent, **more):
    report = agent.report()
    said = tuple(s.model_copy(update=more) for s in report.schedulers)
    command = HostSaid(report=report.model_copy(update={"schedulers": said}))
    await pool.service.execute(partial(host_said, command=command))


def _fail(agent, lease_id):
    agent.workers[lease_id] = ProcessPhase.FAILED
    agent.problems[lease_id] = "Its worker ran out of memory."
