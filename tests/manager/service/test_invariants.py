"""Whatever hosts say and users do, in any order: the laws of leases hold after every step.

The hosts are simulated down to which process physically sits on which device, so that the laws
are about what is, not about what the books believe.
"""

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from manager_harness.compared_books import ComparedBooks

from jupyter_gpupool.manager.service import planning
from jupyter_gpupool.manager.service.claims import RequestClaim, request_claim
from jupyter_gpupool.manager.service.hosts import host_silent
from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.pool_view import build
from jupyter_gpupool.manager.service.sight import Sight
from jupyter_gpupool.manager.service.standing import free_devices, standing_of
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest, Conflict
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.lease import WHOLE_DEVICE, LeasePhase
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds
from jupyter_gpupool.pool.worker_devices import ONE_DEVICE, worker_devices
from jupyter_gpupool.protocol.link import ProcessPhase

_HOSTS = ("a", "b", "c")
_TEAMS = """
[queues.anns]
guarantee = { gpus = 2 }
users = ["ann"]
[queues.bobs]
users = ["bob"]
"""
_MOVES = '[scheduling]\nmoves = "done"\n'
_SERVICE = '[scheduling]\nsurplus_order = "least_attained_service"\n'
_which = st.integers(min_value=0, max_value=20)
_SHAPES = (ONE_DEVICE, worker_devices(0.5), worker_devices(0.3), worker_devices(2))
_ALIVE = (ProcessPhase.STARTING, ProcessPhase.RUNNING, ProcessPhase.RETIRING)


def in_order(view):
    """What is laid over the books comes last there, which means nothing."""
    hosts, claims = (tuple(sorted(x, key=lambda one: one.id)) for x in (view.hosts, view.claims))
    return replace(view, hosts=hosts, claims=claims)


def _look_again(unit):
    unit.replan = True


class Life(RuleBasedStateMachine):
    start_pool = None
    policy = ""
    shapes = (ONE_DEVICE,)

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.beside = {}
        self.pool = self.run(type(self).start_pool())
        self.books = self.pool.service.sight.kept = ComparedBooks()
        self.seldom = Sight()
        for name in _HOSTS:
            self.pool.host(name, 0 if name == "c" else 2, durable=name == "c")
        if self.policy:
            apply = ApplyPolicy(source=self.policy, by="root")
            self.run(self.pool.service.execute(partial(apply_policy, command=apply)))
            for agent in self.pool.agents.values():
                # Where nobody has joined yet there is nothing to take back.
                self.run(self.pool.join(agent))

    def run(self, work):
        return self.loop.run_until_complete(work)

    def teardown(self):
        self.run(self.pool.service.close())
        self.loop.close()

    def agent(self, which):
        return list(self.pool.agents.values())[which % len(_HOSTS)]

    def phase_of(self, agent):
        host = self.pool.service.books.hosts.get(agent.host_id)
        return host.phase if host is not None else None

    def claims(self):
        return [r.claim for r in self.pool.service.books.claims.values()]

    @rule(
        least=st.integers(1, 3),
        more=st.integers(0, 2),
        user=st.sampled_from(["ann", "bob"]),
        priority=st.sampled_from(["interactive", "batch"]),
        shape=_which,
    )
    def claim(self, least, more, user, priority, shape):
        devices = self.shapes[shape % len(self.shapes)]
        self.run(self.pool.claim(least, least + more, user, priority=priority, devices=devices))

    @precondition(lambda self: self.claims())
    @rule(which=_which)
    def release(self, which):
        self.run(self.pool.release(self.claims()[which % len(self.claims())]))

    @precondition(lambda self: self.claims())
    @rule(which=_which, least=st.integers(1, 3), more=st.integers(0, 2))
    def scale(self, which, least, more):
        claim = self.claims()[which % len(self.claims())]
        sleeps = claim.phase in (Phase.HIBERNATING, Phase.HIBERNATED)
        # One that was scaled to none wakes up by it.
        sleeps = sleeps and not claim.hibernation.scaled
        try:
            self.run(self.pool.scale(claim, least, least + more))
        except Conflict:
            assert claim.is_over or sleeps
        else:
            wanted = (claim.bounds.minimum, claim.bounds.maximum)
            assert not sleeps or wanted == (least, least + more)

    @precondition(lambda self: self.claims())
    @rule(which=_which)
    def scale_to_none(self, which):
        claim = self.claims()[which % len(self.claims())]
        try:
            after = self.run(self.pool.scale(claim, 0, 0))
        except (BadRequest, Conflict):
            starts = claim.phase in (Phase.PENDING, Phase.STARTING)
            returns = claim.phase is Phase.RUNNING and claim.awaits_results
            assert claim.is_over or starts or returns
        else:
            assert after.phase in (Phase.HIBERNATING, Phase.HIBERNATED)

    @rule(which=_which)
    def connect(self, which):
        self.run(self.pool.join(self.agent(which)))

    @rule(which=_which)
    def break_link(self, which):
        self.run(self.pool.silent(self.agent(which)))

    @rule(seconds=st.sampled_from([1, 11, 31, 301]))
    def wait(self, seconds):
        self.run(self.pool.pass_s(seconds))
        # What follows from time alone (usage decays) is decided by the next pass, and no later.
        self.run(self.pool.service.execute(_look_again))

    @rule(which=_which)
    def make_so(self, which):
        agent = self.agent(which)
        if self.phase_of(agent) is HostPhase.CONNECTED:
            agent.make_so(self.pool.desired(agent))

    @rule(which=_which)
    def report(self, which):
        self.run(self.pool.say(self.agent(which)))

    @rule(which=_which)
    def come_up(self, which):
        self.agent(which).all_run()

    @rule()
    def settle(self):
        """What usually happens: all that is wanted comes up, and what is not goes."""
        for agent in self.pool.agents.values():
            if self.phase_of(agent) is HostPhase.CONNECTED:
                self.run(self.pool.come_up(agent))
                self.run(self.pool.wind_down(agent))

    @rule(which=_which)
    def stop(self, which):
        self.agent(which).all_stopped()

    @rule(which=_which, other=_which, phase=st.sampled_from(ProcessPhase))
    def worker_becomes(self, which, other, phase):
        agent = self.agent(which)
        alive = [x for x, p in agent.workers.items() if p in _ALIVE]
        if alive:
            agent.workers[alive[other % len(alive)]] = phase

    @rule(which=_which, other=_which)
    def scheduler_dies(self, which, other):
        agent = self.agent(which)
        alive = [x for x, p in agent.schedulers.items() if p in _ALIVE]
        if alive:
            agent.schedulers[alive[other % len(alive)]] = ProcessPhase.FAILED

    @invariant()
    def no_device_is_leased_beyond_one(self):
        held = self.held_of_devices()
        assert max(held.values(), default=0) <= WHOLE_DEVICE

    @invariant()
    def nobody_shares_a_device_but_their_own(self):
        books, owners = self.pool.service.books, {}
        for lease in books.leases.values():
            owner = books.claims[lease.claim_id].claim.owner
            assert all(owners.setdefault(uuid, owner) == owner for uuid in lease.devices)

    def held_of_devices(self):
        held = Counter()
        for lease in self.pool.service.books.leases.values():
            held.update(dict.fromkeys(lease.devices, lease.share))
        return held

    @invariant()
    def a_host_by_itself_stands_as_a_pass_sees_it(self):
        books = self.pool.service.books
        free = free_devices(books)
        for host_id in books.hosts:
            here = [each.device for each in standing_of(books, host_id) if each.is_free]
            assert tuple(here) == free.get(host_id, ())

    @invariant()
    def no_device_is_granted_under_a_process(self):
        leases, held = self.pool.service.books.leases, self.held_of_devices()
        for agent in self.pool.agents.values():
            for lease_id in agent.workers.keys() - leases.keys():
                # Nobody knows any more how much of its device it had.
                for uuid in (agent.placed[lease_id][2], *agent.further[lease_id]):
                    assert not held[uuid] or self.had_beside(lease_id, uuid)

    def had_beside(self, lease_id, uuid):
        """Whether those that hold a device now held it with this worker."""
        holders = {x.id for x in self.pool.service.books.leases.values() if uuid in x.devices}
        return holders <= self.beside.get((lease_id, uuid), set())

    @invariant()
    def who_is_beside_whom_is_noted(self):
        for lease in self.pool.service.books.leases.values():
            for uuid in lease.devices:
                others = {
                    x.id for x in self.pool.service.books.leases.values() if uuid in x.devices
                }
                self.beside.setdefault((lease.id, uuid), set()).update(others)

    @invariant()
    def nothing_is_left_of_an_ended_claim(self):
        books = self.pool.service.books
        for agent in self.pool.agents.values():
            if self.phase_of(agent) is HostPhase.CONNECTED:
                for claim_id in agent.schedulers:
                    ended = books.claims[claim_id].claim.phase is Phase.ENDED
                    told = agent.host_id in books.reports and any(
                        s.claim_id == claim_id for s in books.reports[agent.host_id].schedulers
                    )
                    assert not (ended and told and self.never_lost(agent))

    @invariant()
    def a_second_pass_decides_nothing_new(self):
        time = self.pool.time
        ask = planning.ask(self.pool.service.books, time.wall.timestamp(), time.monotonic_s)
        assert ask().changes_nothing

    @invariant()
    def books_that_are_kept_decide_as_new_ones(self):
        assert not self.books.differences

    @invariant()
    def what_passes_remember_is_true(self):
        service, time = self.pool.service, self.pool.time
        now = (service.books, time.wall.timestamp(), time.monotonic_s)
        assert build(*now, service.sight) == build(*now)

    @rule()
    def look_seldom(self):
        """Whatever has happened between two looks, the second one sees it."""
        seen = self.view(self.pool.service.books, self.seldom)
        assert in_order(seen) == in_order(self.view())

    @rule(which=_which, shape=_which)
    def look_at_what_comes_to_nothing(self, which, shape):
        """A unit that is dropped is seen as it is, and afterwards nothing of it is."""
        unit = self.pool.service.preview()
        host_silent(unit, self.agent(which).host_id)
        devices = self.shapes[shape % len(self.shapes)]
        request = ClaimRequest(workers=WorkerBounds(1, 1), devices=devices)
        request_claim(unit, RequestClaim(caller=self.pool.user("ann"), request=request))
        held = list(unit.leases.values())
        if held:
            lease = held[which % len(held)]
            unit.put_lease(lease.moved(LeasePhase.ENDED, "It is only a thought.", unit.now))
        for sight in (self.pool.service.sight, self.seldom):
            assert in_order(self.view(unit, sight)) == in_order(self.view(unit))

    def view(self, of=None, sight=None):
        time = self.pool.time
        books = self.pool.service.books if of is None else of
        return build(books, time.wall.timestamp(), time.monotonic_s, sight)

    @invariant()
    def what_is_held_is_what_is_charged(self):
        books = self.pool.service.books
        held = Counter()
        for lease in books.leases.values():
            held[f"default/{books.claims[lease.claim_id].claim.owner}"] += lease.thousandths
        if self.policy:
            held = Counter({f"{leaf[-3:]}s/{leaf[-3:]}": n for leaf, n in held.items()})
        charged = {leaf: used.decayed.held for leaf, used in books.usage.items()}
        assert {leaf: n for leaf, n in charged.items() if n} == dict(held)

    @invariant()
    def nobody_is_promised_what_another_keeps(self):
        books = self.pool.service.books
        held = Counter()
        for lease in books.leases.values():
            if lease.stays:
                held.update(dict.fromkeys(lease.devices, lease.share))
        for record in books.claims.values():
            share = record.claim.request.devices.share_of(1)
            for worker in record.promised:
                held.update(dict.fromkeys(worker.devices, share))
        assert max(held.values(), default=0) <= WHOLE_DEVICE

    @invariant()
    def a_notice_is_always_for_somebody(self):
        records = self.pool.service.books.claims
        for lease in self.pool.service.books.leases.values():
            if lease.notice is not None and lease.counts:
                assert any(records[c].promised for c in lease.notice.claimants)
                assert records[lease.claim_id].claim.warning is not None

    @invariant()
    def who_is_on_the_way_has_somewhere_to_go_or_waits(self):
        for record in self.pool.service.books.claims.values():
            if record.moving is not None and record.claim.phase is Phase.RUNNING:
                assert record.promised
            if record.claim.phase in (Phase.HIBERNATING, Phase.HIBERNATED):
                assert record.moving is not None or not record.promised

    @invariant()
    def a_claim_holds_what_its_phase_says(self):
        for claim in self.claims():
            leases = self.pool.leases(claim)
            assert claim.phase is not Phase.ENDED or not leases
            counting = sum(lease.counts for lease in leases)
            assert counting <= max(claim.bounds.maximum, 0) or claim.phase is Phase.RUNNING

    def never_lost(self, agent):
        kinds = [(e.kind, e.host_id) for e in self.pool.service.hub.since(0) or ()]
        return ("host.lost", agent.host_id) not in kinds


@pytest.mark.parametrize("shapes", [(ONE_DEVICE,), _SHAPES], ids=["whole", "parts"])
@pytest.mark.parametrize(("few_claims", "policy"), [(64, ""), (0, ""), (64, _TEAMS)])
def test_laws_of_leases_hold_whatever_happens(start_pool, few_claims, policy, shapes, monkeypatch):
    """No device beyond one, none freed before its process is gone, and a plan that is a fixpoint.

    With many claims as well, which are not explained by each pass, with a policy by which leases
    are taken back, and with parts of devices and several for each worker. Books that are kept
    decide in all of it as books made anew.
    """
    monkeypatch.setattr(planning, "_FEW_CLAIMS", few_claims)
    limits = settings(
        max_examples=60,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    terms = {"start_pool": staticmethod(start_pool), "policy": policy, "shapes": shapes}
    here = type("Here", (Life,), terms)
    run_state_machine_as_test(here, settings=limits)


class ManyLife(Life):
    """So many claims that no pass explains them, and that each looks at what is new alone."""

    policy = _TEAMS


@pytest.mark.parametrize("shapes", [(ONE_DEVICE,), _SHAPES], ids=["whole", "parts"])
def test_books_are_kept_as_leases_are_taken_back(start_pool, shapes, monkeypatch):
    """Looking at what is new alone decides what looking at everything does, takes included."""
    monkeypatch.setattr(planning, "_FEW_CLAIMS", 0)
    limits = settings(
        max_examples=30,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    terms = {"start_pool": staticmethod(start_pool), "shapes": shapes}
    run_state_machine_as_test(type("Here", (ManyLife,), terms), settings=limits)


@pytest.mark.parametrize(
    ("few_claims", "policy"),
    [(64, _TEAMS + _MOVES), (0, _TEAMS + _MOVES), (64, _TEAMS + _SERVICE)],
    ids=["moves", "moves, many", "service"],
)
def test_laws_of_leases_hold_as_claims_move(start_pool, few_claims, policy, monkeypatch):
    """Where claims go elsewhere for others, or give way to whoever has had less."""
    monkeypatch.setattr(planning, "_FEW_CLAIMS", few_claims)
    limits = settings(
        max_examples=60,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    terms = {"start_pool": staticmethod(start_pool), "policy": policy, "shapes": _SHAPES}
    run_state_machine_as_test(type("Here", (Life,), terms), settings=limits)
