"""Moves as the manager carries them out: told first, results kept, nobody else gets the place."""

from dataclasses import replace
from functools import partial

import pytest

from jupyter_gpupool.manager.service import planning
from jupyter_gpupool.manager.service.hibernating import HibernateClaim, hibernate_claim
from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.worker_devices import WorkerDevices
from jupyter_gpupool.protocol.keeping import Unkept, UnkeptReason

POLICY = """
[queues.lab]
users = ["*"]
[scheduling]
moves = "{moves}"
reclaim = {reclaim}
grace = "30s"
[hibernation]
resume_on_task = false
"""
PAIR = WorkerDevices(count=2)


async def ruled(pool, moves: str = "done", reclaim: str = "true") -> None:
    source = POLICY.format(moves=moves, reclaim=reclaim)
    command = ApplyPolicy(source=source, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))


class Scattered:
    """Two hosts of two devices; bob holds one of the first, cleo of the second, each at work."""

    def __init__(self, pool) -> None:
        self.pool = pool

    async def set_up(self, moves: str = "done", reclaim: str = "true") -> "Scattered":
        pool = self.pool
        self.agents = (await pool.joined("a", 2), await pool.joined("b", 2))
        await ruled(pool, moves, reclaim)
        self.bob = await pool.claim(user="bob", near="a")
        self.cleo = await pool.claim(user="cleo", near="b")
        for claim in (self.bob, self.cleo):
            self.agents[0].results[claim.id] = 3
            self.agents[1].results[claim.id] = 3
        await self.come_up()
        return self

    async def come_up(self) -> None:
        await self.pool.come_up(*self.agents)

    async def wind_down(self) -> None:
        await self.pool.wind_down(*self.agents)

    async def ask(self) -> None:
        """Ann wants both devices of one host; remembers who has to move for her."""
        self.ann = await self.pool.claim(devices=PAIR)
        warned = [c for c in (self.bob, self.cleo) if self.pool.now(c).warning is not None]
        self.moved = warned[0] if warned else self.cleo
        self.other = self.bob if self.moved is self.cleo else self.cleo
        assert len(warned) <= 1, "one is enough"

    def cannot_keep(self, *claims) -> None:
        """They hold an actor."""
        for agent in self.agents:
            for claim in claims:
                unkept = Unkept(key="counter-1", reason=UnkeptReason.ACTOR)
                agent.unkept[claim.id] = (unkept,)

    def hosts_of(self, claim) -> list[str]:
        return [lease.host_id for lease in self.pool.leases(claim) if lease.counts]

    def phases(self) -> tuple[Phase, Phase]:
        """Of who moves, and of whom it is for."""
        return self.pool.now(self.moved).phase, self.pool.now(self.ann).phase

    async def lose_the_way(self) -> None:
        """The host is lost where who moves is to go."""
        [to] = self.pool.service.books.claims[self.moved.id].promised
        gone = next(agent for agent in self.agents if agent.host_id == to.host_id)
        await self.pool.lost(gone)
        self.agents = tuple(agent for agent in self.agents if agent is not gone)

    async def until_on_the_way(self) -> None:
        """The grace is over, and its results are on their way to safety."""
        await self.pool.pass_s(31)
        assert self.phases() == (Phase.HIBERNATING, Phase.PENDING)


@pytest.fixture
async def scattered(pool):
    """Who moves has been told, and it is not yet due."""
    found = await Scattered(pool).set_up()
    await found.ask()
    return found


@pytest.fixture(params=["few", "many"])
def claims(request, monkeypatch):
    """Passes over books made anew, and over books that are kept."""
    if request.param == "many":
        monkeypatch.setattr(planning, "_FEW_CLAIMS", 0)
    return request.param


async def test_claim_is_told_why_it_moves_and_what_is_kept_for_it(scattered):
    """And it has its grace like anybody from whom something is taken."""
    warning = scattered.pool.now(scattered.moved).warning
    assert warning.reason == (
        "Moved so that a claim of lab/ann fits. 1 device on 1 host kept for it meanwhile; it goes"
        " on there with its results."
    )
    assert (warning.deadline - scattered.pool.time.wall).total_seconds() == 30


async def test_what_moves_makes_room_and_goes_on_at_once(claims, pool):
    """It waits for nobody, not even for its old device to be proven free; then the gang starts."""
    scattered = await Scattered(pool).set_up()
    await scattered.ask()
    await scattered.until_on_the_way()
    [before] = {lease.host_id for lease in pool.leases(scattered.moved)}
    await scattered.come_up()
    assert scattered.phases() == (Phase.STARTING, Phase.PENDING)
    assert pool.now(scattered.moved).reason == "Moved: 1 device on 1 host granted."
    assert before not in scattered.hosts_of(scattered.moved)
    await scattered.wind_down()
    assert scattered.hosts_of(scattered.ann) == [before]
    await scattered.come_up()
    await scattered.come_up()
    assert scattered.phases() == (Phase.RUNNING, Phase.RUNNING)
    assert pool.now(scattered.moved).hibernation is None
    assert pool.now(scattered.other).warning is None


async def test_nothing_moves_back(scattered):
    """Once all run, an hour of passes asks nobody for anything."""
    await scattered.until_on_the_way()
    for _ in range(3):
        await scattered.come_up()
        await scattered.wind_down()
    placed = [scattered.hosts_of(c) for c in (scattered.ann, scattered.bob, scattered.cleo)]
    for _ in range(60):
        await scattered.pool.pass_s(60)
        await scattered.come_up()
    assert placed == [scattered.hosts_of(c) for c in (scattered.ann, scattered.bob, scattered.cleo)]
    assert all(scattered.pool.now(c).warning is None for c in (scattered.bob, scattered.cleo))


async def test_nobody_else_gets_the_place_it_goes_to(claims, pool):
    """From the notice until it is there, though it stands free all the while."""
    scattered = await Scattered(pool).set_up()
    await scattered.ask()
    eve = await pool.claim(user="eve")
    await scattered.until_on_the_way()
    late = await pool.claim(user="zoe")
    await scattered.come_up()
    assert scattered.phases()[0] is Phase.STARTING
    await scattered.wind_down()
    await scattered.come_up()
    assert scattered.phases()[1] is Phase.RUNNING
    assert [pool.now(claim).phase for claim in (eve, late)] == [Phase.PENDING] * 2


async def test_claim_whose_results_cannot_be_kept_stays(scattered):
    """It loses nothing and goes nowhere, and its user reads why; the gang waits on."""
    pool, moved = scattered.pool, scattered.moved
    scattered.cannot_keep(moved)
    await scattered.until_on_the_way()
    await scattered.come_up()
    assert scattered.phases() == (Phase.RUNNING, Phase.PENDING)
    assert "counter-1 is an actor" in pool.now(moved).reason
    assert [lease.notice for lease in pool.leases(moved)] == [None]
    record = pool.service.books.claims[moved.id]
    assert (record.moving, record.promised) == (None, ())


async def test_claim_that_stayed_is_asked_again_after_an_hour(scattered):
    """Not before: what could not be kept then may be gone by now."""
    pool, both = scattered.pool, (scattered.bob, scattered.cleo)
    scattered.cannot_keep(*both)
    for _ in range(4):
        await pool.pass_s(31)
        await scattered.come_up()
    for _ in range(57):
        assert [pool.now(claim).warning for claim in both] == [None, None]
        await pool.pass_s(60)
    await pool.pass_s(180)
    assert any(pool.now(claim).warning for claim in both)


async def test_other_claim_moves_instead_of_one_that_cannot(scattered):
    """What is known of the one leaves the other, and the gang starts all the same."""
    scattered.cannot_keep(scattered.moved)
    await scattered.until_on_the_way()
    await scattered.come_up()
    assert scattered.pool.now(scattered.other).warning is not None
    await scattered.pool.pass_s(31)
    for _ in range(3):
        await scattered.come_up()
        await scattered.wind_down()
    assert scattered.phases() == (Phase.RUNNING, Phase.RUNNING)


async def test_known_beforehand_nothing_is_begun(scattered):
    """While it is warned its results are looked at; what cannot be kept stops the move."""
    scattered.cannot_keep(scattered.moved)
    await scattered.come_up()
    await scattered.pool.pass_s(31)
    claim = scattered.pool.now(scattered.moved)
    assert (claim.phase, claim.warning) == (Phase.RUNNING, None)
    assert claim.reason == "It keeps what it has, for its results cannot be kept."


async def test_move_is_void_when_nobody_wants_it_any_more(scattered):
    """The claim keeps what it has, and what was kept for it is everybody's."""
    await scattered.pool.release(scattered.ann)
    assert scattered.pool.now(scattered.moved).warning is None
    assert (await scattered.pool.claim(2, user="eve")).phase is Phase.STARTING
    await scattered.pool.pass_s(31)
    assert scattered.pool.now(scattered.moved).phase is Phase.RUNNING


@pytest.fixture
async def apart(pool):
    """The same, with all schedulers on a host of their own, and nothing reclaimed."""
    durable = await pool.joined("d", 0, durable=True)
    found = await Scattered(pool).set_up(reclaim="false")
    found.agents = (durable, *found.agents)
    durable.results = dict.fromkeys((found.bob.id, found.cleo.id), 3)
    await found.come_up()
    await found.come_up()
    await found.ask()
    return found


async def test_way_that_is_shut_stops_a_move_that_has_not_begun(apart):
    """Its host is lost: there is nowhere to go, so nothing is given."""
    await apart.lose_the_way()
    moved, pool = apart.pool.now(apart.moved), apart.pool
    assert (moved.phase, moved.warning) == (Phase.RUNNING, None)
    assert [lease.notice for lease in pool.leases(moved)] == [None]
    assert pool.service.books.claims[moved.id].promised == ()


async def test_way_that_is_shut_later_loses_nothing(apart):
    """It has given its device already: it waits in its old place, before who came after it."""
    await apart.until_on_the_way()
    await apart.lose_the_way()
    for _ in range(3):
        await apart.come_up()
        await apart.wind_down()
    moved = apart.pool.now(apart.moved)
    assert (moved.phase, moved.wanted_since) == (Phase.RESUMING, apart.moved.wanted_since)
    assert moved.hibernation.results == 3


async def test_users_own_wish_ends_a_move(scattered):
    """Whoever has it hibernate meanwhile has it hibernate, until they resume it."""
    command = HibernateClaim(
        caller=scattered.pool.user(scattered.moved.owner), claim_id=scattered.moved.id
    )
    await scattered.pool.service.execute(partial(hibernate_claim, command=command))
    for _ in range(2):
        await scattered.come_up()
        await scattered.wind_down()
    assert scattered.phases() == (Phase.HIBERNATED, Phase.RUNNING)


async def test_released_claim_makes_room_and_is_kept_no_place(scattered):
    """It is over; both places are others'."""
    await scattered.pool.release(scattered.moved)
    await scattered.wind_down()
    assert scattered.phases() == (Phase.ENDED, Phase.STARTING)
    assert (await scattered.pool.claim(user="eve")).phase is Phase.STARTING


async def test_claim_that_is_starting_starts_elsewhere(pool):
    """There is nobody to warn, and nothing to keep."""
    scattered = Scattered(pool)
    scattered.agents = (await pool.joined("a", 2), await pool.joined("b", 2))
    await ruled(pool)
    scattered.bob = await pool.claim(user="bob", near="a")
    scattered.cleo = await pool.claim(user="cleo", near="b")
    scattered.ann = await pool.claim(devices=PAIR)
    await scattered.wind_down()
    for _ in range(2):
        await scattered.come_up()
        await scattered.wind_down()
    every = (scattered.ann, scattered.bob, scattered.cleo)
    assert [pool.now(claim).phase for claim in every] == [Phase.RUNNING] * 3
    assert all(pool.now(claim).failed_starts == 0 for claim in every)


async def test_surplus_worker_moves_while_its_claim_goes_on(pool):
    """The others take over its results, and one comes in its stead where there is room."""
    agents = await pool.joined("a", 2), await pool.joined("b", 2)
    await ruled(pool)
    dan, eve = await pool.claim(user="dan", near="a"), await pool.claim(user="eve", near="b")
    bob = await pool.claim(1, 2, user="bob")
    await pool.come_up(*agents)
    for claim in (dan, eve):
        await pool.release(claim)
    await pool.wind_down(*agents)
    assert sorted(lease.host_id for lease in pool.leases(bob)) == ["a", "b"]
    ann = await pool.claim(devices=PAIR)
    assert pool.now(bob).warning is not None
    await pool.pass_s(31)
    assert [x.phase for x in pool.leases(bob)].count(LeasePhase.RETIRING) == 1
    await pool.pass_s(31)
    for _ in range(2):
        await pool.wind_down(*agents)
        await pool.come_up(*agents)
    assert (pool.now(bob).phase, pool.now(ann).phase) == (Phase.RUNNING, Phase.RUNNING)
    assert len({lease.host_id for lease in pool.leases(bob) if lease.counts}) == 1
    assert sum(lease.counts for lease in pool.leases(bob)) == 2


@pytest.mark.parametrize("when", ["told", "hibernating", "starting"])
async def test_move_goes_on_after_the_manager_was_killed(scattered, when):
    """Whatever was written down last: all arrive, and no result is lost."""
    pool = scattered.pool
    if when != "told":
        await scattered.until_on_the_way()
    if when == "starting":
        await scattered.come_up()
    await killed(pool)
    for agent in scattered.agents:
        await pool.join(agent)
    if when == "told":
        await pool.pass_s(31)
        assert pool.now(scattered.moved).phase is Phase.HIBERNATING
    for _ in range(3):
        await scattered.come_up()
        await scattered.wind_down()
    assert scattered.phases() == (Phase.RUNNING, Phase.RUNNING)


async def killed(pool) -> None:
    """Another manager loads what this one has written."""
    books, commits = pool.service.books, pool.store.commits
    pool.store.everything = replace(
        pool.store.everything,
        claims=tuple(books.claims.values()),
        leases=tuple(books.leases.values()),
        hosts=tuple(books.hosts.values()),
        policies=tuple(new for each in commits for new in each.new_policies)[::-1],
    )
    await pool.service.close()
    pool.service = Service(pool.store, Settings(), pool.time.clock())
    await pool.service.start()


async def test_gang_is_told_what_would_do_where_moves_are_only_proposed(pool):
    """In one sentence, and nobody is asked for anything."""
    scattered = await Scattered(pool).set_up("proposed")
    await scattered.ask()
    wait = pool.service.waits.of(scattered.ann.id)
    assert wait.moves == 1
    assert wait.reason == (
        "Waiting for 2 of 2 devices; enough are free, but not together;"
        " it would fit if 1 claim moved."
    )
    assert pool.now(scattered.bob).warning is None
    assert pool.now(scattered.cleo).warning is None


async def test_parts_go_together_so_that_a_device_comes_free(claims, pool):
    """Two halves on two devices; whoever wants a whole one gets it."""
    agent = await pool.joined("a", 2)
    await ruled(pool)
    half = WorkerDevices(count=0, share=500)
    halves = [await pool.claim(user="bob", devices=half) for _ in range(4)]
    await pool.come_up(agent)
    for claim in _one_of_each_device(pool, halves):
        await pool.release(claim)
    await pool.wind_down(agent)
    ann = await pool.claim()
    await pool.pass_s(31)
    for _ in range(3):
        await pool.come_up(agent)
        await pool.wind_down(agent)
    left = [pool.now(c) for c in halves if not pool.now(c).is_over]
    assert [claim.phase for claim in left] == [Phase.RUNNING] * 2
    assert pool.now(ann).phase is Phase.RUNNING


def _one_of_each_device(pool, claims):
    """One claim for each device that they share."""
    return {lease.device: claim for claim in claims for lease in pool.leases(claim)}.values()
