"""A claim as an ordinary Dask cluster: `Client(cluster)`, `scale`, `close`, the HTML view.

Made by `claim`. It overrides what `distributed.deploy.Cluster` names as a subclass's own, and adds
that the pool may end a claim: then its clients are told instead of hanging.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import asyncio
import os
import weakref
from typing import TYPE_CHECKING, Any

from distributed.core import Status

from jupyter_gpupool.pool.claim import OVER, Phase
from jupyter_gpupool.pool.errors import ClaimLost, Conflict, PoolError, Unavailable
from jupyter_gpupool.protocol.api import ClaimView, ConnectionView

from .arrivals import Arrivals
from .card import card_html
from .clients import fail_results
from .closing import Closing
from .following import Following, Listener
from .giving_back import give_back_at_exit
from .greeting import Greeted, Greeting
from .in_use import InUse
from .losing import EndsByItself, unless_lost
from .moments import here_and_now
from .opening import Opened, Opening, lost
from .reclaiming import Reclaiming
from .security import ClaimSecurity
from .sizing import SizedCluster
from .voice import Voice
from .widget import show

if TYPE_CHECKING:
    from jupyter_gpupool.client.pools import Pool

_NOT_RUNNING = (Status.closed, Status.closing, Status.failed)


class ClaimCluster(EndsByItself, Closing, InUse, SizedCluster):
    """The workers of one claim, and the scheduler that is theirs alone.

    Attributes:
        release_on_close: Whether `close` gives the claim back.
    """

    def __init__(
        self,
        opening: Opening,
        *,
        release_on_close: bool = True,
        timeout_s: float | None = None,
        asynchronous: bool = False,
        loop: Any = None,
        quiet: bool = False,
    ) -> None:
        self._opening = opening
        self._prepare_closing()
        self._reclaiming = Reclaiming()
        self.release_on_close = release_on_close
        self._timeout_s = timeout_s
        self._voice = Voice(quiet=quiet)
        self._arrivals = Arrivals()
        self.lost: ClaimLost | None = None
        self.is_over = asyncio.Event()
        self._security: ClaimSecurity | None = None
        self._dashboard_url: str | None = None
        self._following: Following | None = None
        self._greeting = Greeting()
        self._warming: asyncio.Future[None] | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        super().__init__(
            asynchronous=asynchronous,
            loop=loop,
            quiet=quiet,
            name=opening.name,
            scheduler_sync_interval="30s",
        )
        self._starting = asyncio.Lock()
        if not self.called_from_running_loop:
            self._loop_runner.start()
        self._opening.reachable = self._is_reachable

    @property
    def pool(self) -> "Pool":
        """The pool it comes from."""
        return self._opening.pool

    @property
    def claim_id(self) -> str:
        """The claim's id in the pool; "" before it is requested."""
        return "" if self._opening.view is None else self._opening.view.id

    @property
    def view(self) -> ClaimView | None:
        """The claim as the manager last told; None before it is requested."""
        return self._opening.view

    @property
    def security(self) -> ClaimSecurity:
        """The claim's certificate; waits until the claim runs."""
        if self._security is None:
            self._wait_if_possible()
        assert self._security is not None, "a running claim has its certificate"
        return self._security

    @property
    def scheduler_address(self) -> str:
        """Where the scheduler listens.

        Raises:
            ClaimLost: If the claim has ended by itself.
        """
        if self.lost is not None:
            raise self.lost
        address: str = super().scheduler_address
        return address

    @property
    def dashboard_link(self) -> str:
        """The scheduler's dashboard behind its secret prefix; "" if it has none."""
        return self._dashboard_url or ""

    # What it takes to run

    def request(self) -> None:
        """Ask for the claim without waiting for it; blocking callers only."""
        self._request()
        # Nobody may ever wait for it: it has to be known from where it was asked for.
        self.pool.background.loop.call_soon_threadsafe(self._opening.attach)

    def _request(self) -> None:
        try:
            ask = self.pool.background.run
            self._is_requested(ask(lambda _say: self._opening.request(), self._voice.hear))
        except BaseException:
            self._abandon()
            self._loop_runner.stop()
            raise

    def wait_until_running(self, timeout_s: float | None = None) -> None:
        """Wait until the claim runs and its scheduler is reached; blocking callers only.

        Raises:
            StillWaiting: If it does not run in time.
            ClaimLost: If it ends instead.
        """
        if self.status == Status.running:
            return
        self._check_open()
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        run = self.pool.background.run
        try:
            self._request()
            opened = run(lambda say: self._opening.wait(say, limit_s), self._voice.hear)
            self.sync(self._connect, opened)
            self._voice.wait_is_over(f"Claim {self.name} runs.")
        except BaseException:
            run(lambda _say: self._opening.give_up("its client could not connect"))
            self._abandon()
            self._loop_runner.stop()
            raise

    async def _start(self) -> None:
        """What `await cluster` and `Client(cluster)` wait for."""
        async with self._starting:
            if self.status == Status.running:
                return
            self._check_open()
            await self._opening.find_pool()
            bridge = self.pool.background.bridge
            try:
                opened = await bridge(
                    lambda say: self._opening.wait(say, self._timeout_s), self._voice.hear
                )
                self._is_requested(opened.view)
                await self._connect(opened)
                self._voice.wait_is_over(f"Claim {self.name} runs.")
            except BaseException:
                await bridge(lambda _say: self._opening.give_up("its client could not connect"))
                self._abandon()
                raise

    def __await__(self) -> Any:
        return self._started().__await__()

    async def _started(self) -> "ClaimCluster":
        if self.status != Status.running:
            await self._start()
        return self

    def _wait_if_possible(self) -> None:
        self._check_open()
        if self.asynchronous:
            raise Conflict("The claim does not run yet.", hint="First: await cluster")
        self.wait_until_running()

    def _is_requested(self, view: ClaimView) -> None:
        self.name = view.name
        if self.release_on_close and self._finalizer is None:
            # A cluster that was forgotten must not keep devices when its Python ends.
            self._finalizer = weakref.finalize(
                self, give_back_at_exit, self.pool, view, os.getpid(), self._voice.fall_silent
            )

    def _is_reachable(self, connection: ConnectionView) -> None:
        self._on_loop(self._greeting.begin, connection)

    async def _connect(self, opened: Opened) -> None:
        """Reach its scheduler.

        Raises:
            ClaimLost: If that is gone, and the claim with it.
            Unavailable: If it cannot be reached otherwise.
        """
        listener = Listener(changed=self._has_changed, ended=self._has_ended)
        self._following = Following(self.pool, opened.view, listener)
        self._following.start()
        try:
            greeted = await unless_lost(self, self._reach(opened.connection, self._following))
        except ClaimLost:
            await self._is_hung_up.wait()
            raise
        except Unavailable:
            await self._hang_up()
            raise
        self._warming = asyncio.ensure_future(greeted.warm_workers())

    async def _reach(self, connection: ConnectionView, following: Following) -> Greeted:
        # Events told that it runs, and nothing of its leases; waited for beside, it costs no time.
        look = self.pool.background.bridge(lambda _say: following.first_look())
        greeted, _ = await asyncio.gather(self._meet(connection), look)
        return greeted

    async def _meet(self, connection: ConnectionView) -> Greeted:
        greeted = await self._greeting.finish(connection)
        self._security, self.scheduler_comm = greeted.security, greeted.scheduler
        self._dashboard_url = connection.dashboard_url
        await super()._start()
        return greeted

    # How it ends

    def _has_changed(self, view: ClaimView) -> None:
        self._opening.view = view
        self._voice.warn(view)
        self._reclaiming.hear(view)

    def _has_ended(self, reason: str) -> None:
        self._on_loop(self._lose, reason)

    async def _lose(self, reason: str) -> None:
        """The claim has ended without our doing: say so once, and let nothing hang."""
        if self.status in _NOT_RUNNING:
            return
        self.lost = lost(self.name, reason)
        over = {"phase": Phase.ENDING, "reason": reason, "warning": None}
        self._opening.view = self._opening.view_now.model_copy(update=over)
        # First of all: a connection that breaks meanwhile would cancel them without a reason.
        fail_results(self, self.lost)
        self.status = Status.closing
        self.is_over.set()
        self._is_settled()
        self._voice.say(str(self.lost))
        await self._hang_up()
        fail_results(self, self.lost)

    async def goes_on(self) -> bool:
        """Whether the pool knows of no end of it; one that does not answer knows of none."""
        ask = self.pool.client.claim
        try:
            view = await self.pool.background.bridge(lambda _say: ask(self.claim_id, patience_s=0))
        except PoolError:
            return True
        return view.phase not in OVER

    def _abandon(self) -> None:
        """It never ran, and what was asked for has been given up."""
        self._voice.wait_is_over()
        if self._following is not None:
            self._following.stop()
        self.status = Status.closed
        self._is_settled()

    def _on_loop(self, function: Any, argument: Any) -> None:
        assert self.loop is not None, "a cluster that is started has its loop"
        self.loop.add_callback(function, argument)

    def _check_open(self) -> None:
        if self.lost is not None:
            raise self.lost
        if self.status in _NOT_RUNNING:
            raise Conflict(f"Claim {self.name} has been closed.", hint="Claim again to go on.")

    def __repr__(self) -> str:
        if self.lost is not None:
            return f"{type(self).__name__}({self.name!r}, lost: {self.lost.message})"
        text: str = super().__repr__()
        return text

    def _repr_html_(self, cluster_status: object = None) -> str:
        if self.view is None:
            text: str = super()._repr_html_(cluster_status)
            return text
        return card_html(self.view, here_and_now())

    def _ipython_display_(self, **_asked: object) -> None:
        show(self)
