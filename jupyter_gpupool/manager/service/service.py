"""The service: the only writer of truth. Runs commands one after the other, commits in groups.

Whatever arrives while a commit is under way makes the next batch: one unit of work, one
transaction. Only after it is durable do the books change, the callers hear, and events leave.
"""

import asyncio
import contextlib
import logging
from typing import TypeVar, cast

from jupyter_gpupool.manager.clock import Clock
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.manager.store.stamp import Diverged
from jupyter_gpupool.manager.store.store import Store
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import PoolError, Unavailable
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.steps import Steps

from .activity import Activity
from .books import Books
from .committing import changes_of
from .concerned import claims_concerned, hosts_concerned
from .deadlines import Deadlines
from .demand import Emptiness
from .desired import desired_for
from .forecasts import Forecasts
from .hub import Hub
from .idle_samples import HOLDS_FOR_S
from .idle_sight import IdleSight
from .idle_watching import save_watches
from .jobs import Command, Job, attempt, fail_all, succeed
from .kept_pool import Passed
from .learning import MOST_PAST, Learning
from .links import Links
from .loading import load
from .manager_problems import ManagerProblem, problems_of
from .outbox import Outboxes
from .pass_failures import PassFailures
from .planning import ask, run_pass, steps_of
from .policy_effects import held_by_queue
from .pool_view import build
from .queue_standings import QueueStandings
from .sight import Sight
from .sightings import Sightings
from .unit import Moment, UnitOfWork
from .usage_reports import UsageReports
from .waits import Waits
from .wanting import WhoWaits

_LOG = logging.getLogger(__name__)
_MOST_QUEUED = 10_000
_MOST_A_BATCH = 500

_R = TypeVar("_R")


class Service:
    """The manager's books and the one queue of commands that changes them.

    Attributes:
        writable: False after the database failed a commit, until one works again.
        batched: Something may be due at another time than before.
        trying: Held by a dry run, which takes a core to itself for a while.
    """

    def __init__(self, store: Store, settings: Settings, clock: Clock) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self.books = Books()
        self.hub = Hub()
        self.links = Links()
        self.activity = Activity(clock)
        self.sightings = Sightings()
        self.deadlines = Deadlines(settings)
        self.outboxes = Outboxes(boot=0)
        self.sight = Sight()
        self.failures = PassFailures(clock.now)
        self.waits = Waits(
            lambda: ask(self.books, clock.now().timestamp(), clock.monotonic(), self.sight),
            clock.monotonic,
            self.failures.note,
        )
        self._wanting = WhoWaits(self.books.claims, lambda: self.waits.last, clock.monotonic)
        self._since_s = clock.monotonic()
        self.emptiness = Emptiness()
        self.learning = Learning()
        self.queue_standings = QueueStandings(
            lambda: (self.look(), held_by_queue(self.books, self.books.policy)),
            lambda: (self.books.policy.revision, self.books.seq),
            clock.monotonic,
        )
        self.usage_reports = UsageReports(
            lambda: (self.books.policy.revision, self.books.seq), clock.monotonic
        )
        self.forecasts = Forecasts(self.look, self.learning, self._recall, clock.monotonic)
        self.writable = True
        self.committed_s = clock.monotonic()
        self.batched = asyncio.Event()
        self.trying = asyncio.Lock()
        self._queue: list[Job] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._arrived = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._closed = False
        self._in_doubt: tuple[UnitOfWork, Passed | None] | None = None

    async def start(self) -> None:
        """Load the books and begin to work.

        Raises:
            Unavailable: If the database cannot be read and written.
        """
        everything = self.store.load()
        load(everything, self.books, self.hub, self.clock.now().timestamp())
        self.outboxes = Outboxes(boot=everything.boot)
        for host_id in self.books.hosts:
            self._tell(host_id)
        now, monotonic_s = self.clock.now(), self.clock.monotonic()
        self.deadlines.follow_claims(list(self.books.claims), self.books, now, monotonic_s)
        self.deadlines.follow_hosts(list(self.books.hosts), self.books, monotonic_s, monotonic_s)
        self.deadlines.follow_reservations(self.books, now, monotonic_s)
        self.emptiness.follow(self.books.hosts, self.books, now.timestamp())
        self._worker = asyncio.create_task(self._work(), name="gpupool-service")

    async def close(self) -> None:
        """Finish what was accepted, then stop."""
        if self._worker is not None and not self._closed:
            with contextlib.suppress(PoolError):
                await self.execute(save_watches)
        self._closed = True
        self._arrived.set()
        if self._worker is not None:
            await asyncio.wait((self._worker,))
        await self.forecasts.close()

    @property
    def has_failed(self) -> bool:
        """Whether the worker stopped by itself, which only a defect can make it do."""
        worker = self._worker
        return worker is not None and worker.done() and worker.exception() is not None

    async def failed(self) -> None:
        """Wait until the worker stops by itself, which is for ever unless there is a defect."""
        if self._worker is not None:
            await asyncio.wait((self._worker,))

    def link_broke(self, host_id: HostId) -> None:
        """A host's link is gone: it falls silent as soon as that can be written down."""
        self.deadlines.link_broke(host_id, self.clock.monotonic())
        self.batched.set()

    def look_at(self, claim_id: ClaimId) -> None:
        """Have the hosts of a claim report now: something is due that depends on what it does."""
        record = self.books.claims.get(claim_id)
        if record is None or record.claim.scheduler is None:
            return
        hosts = {lease.host_id for lease in self.books.leases_of(claim_id)}
        for host_id in (*hosts - {record.claim.scheduler.host_id}, record.claim.scheduler.host_id):
            self.links.look(host_id)

    async def next_batch(self) -> None:
        """Wait until the books have changed once more."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    async def execute(self, command: Command[_R]) -> _R:
        """Run a command and wait until what it did is durable.

        Raises:
            PoolError: What the command raised; nothing of it was kept.
            Unavailable: If it could not be made durable, or too much is waiting.
        """
        if self._closed or len(self._queue) >= _MOST_QUEUED:
            raise Unavailable(
                "The manager is stopping." if self._closed else "The manager is overloaded.",
                hint="Try again in a few seconds.",
            )
        job = Job(command, asyncio.get_running_loop().create_future())
        self._queue.append(job)
        self._arrived.set()
        return cast("_R", await job.answer)

    def preview(self) -> UnitOfWork:
        """A unit of work on the books as they are, to see what commands would do; never kept."""
        return UnitOfWork(self.books, self._moment())

    @property
    def steps(self) -> Steps:
        """What the policy lets a pass do."""
        return steps_of(self.books)

    def problems(self) -> tuple[ManagerProblem, ...]:
        """What is wrong with the manager itself although it works."""
        return problems_of(self.books.policy, self.failures)

    def look(self) -> PoolView:
        """The books as a pass sees them now."""
        now_s = self.clock.now().timestamp()
        return build(self.books, now_s, self.clock.monotonic(), self.sight)

    async def _recall(self) -> None:
        self.learning.recall(await self.store.ended_claims(None, MOST_PAST), self.books)

    async def _work(self) -> None:
        while self._queue or not self._closed:
            await self._arrived.wait()
            batch, self._queue = self._queue[:_MOST_A_BATCH], self._queue[_MOST_A_BATCH:]
            if not self._queue and not self._closed:
                self._arrived.clear()
            if batch:
                await self._run_or_stop(batch)

    async def _run_or_stop(self, batch: list[Job]) -> None:
        try:
            await self._run(batch)
        except BaseException:
            # Memory and database may differ now: nobody may rely on this process any more.
            self._closed = True
            fail_all([*batch, *self._queue], Unavailable("The manager's writer has stopped."))
            self._queue.clear()
            raise

    async def _run(self, batch: list[Job]) -> None:
        try:
            await self._clear_doubt()
        except Diverged:
            raise
        except Unavailable as error:
            fail_all(batch, error)
            return
        unit = UnitOfWork(self.books, self._moment())
        done = [(job, outcome) for job in batch if (outcome := attempt(unit, job)) is not None]
        failure = await self._make_durable(unit, self._plan(unit))
        if failure is None:
            for job, outcome in done:
                succeed(job, outcome[0])
        elif isinstance(failure, Unavailable) or self._in_doubt is not None or len(done) == 1:
            fail_all([job for job, _ in done], failure)
        else:
            await self._run_halves([job for job, _ in done])

    async def _run_halves(self, jobs: list[Job]) -> None:
        # One of them made what no database takes: halving singles it out in a few commits.
        middle = len(jobs) // 2
        for half in (jobs[:middle], jobs[middle:]):
            if half:
                await self._run(half)

    async def _make_durable(self, unit: UnitOfWork, passed: Passed | None) -> Exception | None:
        """Commit and follow; what went wrong if nothing became durable, as far as one can tell."""
        try:
            await self._commit(unit)
        except Diverged:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, the books stay as the database is
            _LOG.warning("A commit failed: %s", error)
            if isinstance(error, Unavailable):
                self.writable = False
            self.sight.kept.drop()
            self._in_doubt = (unit, passed)
            return None if await self._came_through() else error
        self._follow(unit, passed)
        return None

    async def _came_through(self) -> bool:
        try:
            return await self._clear_doubt()
        except Diverged:
            raise
        except Unavailable:
            return False  # still in doubt; the next batch asks again before it begins

    async def _clear_doubt(self) -> bool:
        """Find out what became of a commit that failed, and follow it if it is durable."""
        if self._in_doubt is None:
            return False
        unit, passed = self._in_doubt
        is_written = await self.store.settle()
        self._in_doubt = None
        if is_written:
            self._follow(unit, passed)
        return is_written

    def _moment(self) -> Moment:
        return Moment(
            now=self.clock.now(),
            monotonic_s=self.clock.monotonic(),
            settings=self.settings,
            outboxes=self.outboxes,
            sight=self.sight,
            idle=IdleSight(
                sightings=self.sightings,
                activity=self.activity,
                wanting=self._wanting.now(),
                since_s=self._since_s,
            ),
        )

    def _plan(self, unit: UnitOfWork) -> Passed | None:
        if not unit.replan and not unit.arrived:
            return None
        child = unit.child()
        try:
            passed = run_pass(child, self.books.live.total())
        except Exception as error:  # noqa: BLE001 - the batch's own commands must not be lost with a failing pass
            _LOG.exception("A scheduling pass failed; nothing was granted")
            self.failures.note(error)
            self.deadlines.pass_failed(unit.moment.monotonic_s)
            self.sight.kept.drop()
            return None
        child.merge()
        return passed

    async def _commit(self, unit: UnitOfWork) -> None:
        changes = changes_of(unit, self.books)
        if changes.is_empty:
            return
        await self.store.commit(changes)
        self.writable = True
        self.committed_s = self.clock.monotonic()

    def _follow(self, unit: UnitOfWork, passed: Passed | None) -> None:
        hosts = hosts_concerned(unit, self.books)
        claims = claims_concerned(unit)
        if not unit.is_blank:
            self.sight.kept.happened()
        unit.merge()
        if unit.replan or unit.arrived:
            is_explained = passed is not None and passed.is_explained
            self.waits.take(passed.decided if passed is not None and is_explained else None)
            self.deadlines.follow_pass(passed, unit.moment.monotonic_s)
        for host_id in hosts:
            self._tell(host_id)
        self._forget(unit)
        self._forget_hosts(unit)
        self._set_deadlines(unit, claims)
        self.emptiness.follow(hosts, self.books, unit.moment.now.timestamp())
        self.deadlines.follow_reservations(self.books, unit.moment.now, unit.moment.monotonic_s)
        self.hub.publish(unit.events)
        self.batched.set()
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _tell(self, host_id: HostId) -> None:
        if self.outboxes.put(host_id, desired_for(host_id, self.books)):
            self.links.wake(host_id)

    def _forget(self, unit: UnitOfWork) -> None:
        changed = unit.claims.changed.values()
        ended = [r for r in changed if r is not None and r.claim.phase is Phase.ENDED]
        self.learning.teach(ended, self.books)
        over = [record.claim.id for record in ended]
        self.outboxes.forget([*unit.ended_leases, *over])
        self.activity.forget(over)
        self.sightings.forget(over)
        for claim_id, watched in unit.watches.changed.items():
            if watched is not None:
                self.sightings.drop_before(claim_id, unit.moment.monotonic_s - HOLDS_FOR_S)
        self.deadlines.follow_watches(unit.watches.changed, self.books)

    def _forget_hosts(self, unit: UnitOfWork) -> None:
        for host_id in [i for i, host in unit.hosts.changed.items() if host is None]:
            self.outboxes.forget_host(host_id)
            self.links.forget(host_id)

    def _set_deadlines(self, unit: UnitOfWork, claims: set[ClaimId]) -> None:
        moment = unit.moment
        self.deadlines.follow_claims(claims, self.books, moment.now, moment.monotonic_s)
        for host_id in unit.hosts.changed:
            heard_s = self.links.heard_s.get(host_id, moment.monotonic_s)
            self.deadlines.follow_hosts([host_id], self.books, heard_s, moment.monotonic_s)
