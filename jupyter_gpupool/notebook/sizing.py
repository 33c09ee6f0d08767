"""How many workers a claim's cluster has, wants, and is told of.

Base of `cluster`. The manager decides: nothing on this side runs to scale or adapt.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from distributed.core import Status
from distributed.deploy.cluster import Cluster

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.request import WorkerBounds
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.keeping import HOLDER_NAME

from .arrivals import Arrivals
from .voice import Voice
from .workers import adapted, granted, planned, scaled

if TYPE_CHECKING:
    from .opening import Opening


class SizedCluster(Cluster):
    """A Dask cluster whose size is its claim's.

    Sets of workers, by name (a worker is named for its lease):
        plan: What the claim wants; what is not granted yet has a number for a name.
        requested: What is granted to it.
        observed: What is registered with its scheduler.
    """

    _opening: "Opening"
    _arrivals: Arrivals
    _voice: Voice

    @property
    @abstractmethod
    def view(self) -> ClaimView | None:
        """The claim as the manager last told; None before it is requested."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise why it cannot be used any more, if so."""

    def scale(self, n: int) -> Any:
        """Want this many workers from now on; what is granted follows by itself.

        With none the claim hibernates: its results are kept, and scaling it up resumes it.

        Raises:
            BadRequest: If it is no number from zero on.
            ClaimLost: If the claim has ended by itself.
        """
        self._check_open()
        return self.sync(self._set_bounds, scaled(self.view, n))

    def adapt(  # type: ignore[override] # there is no Adaptive on this side to choose
        self, minimum: int | None = 0, maximum: float | None = None, **others: Any
    ) -> Any:
        """Let the manager choose between these bounds; nothing runs on this side for it.

        Raises:
            BadRequest: If the bounds make no sense, or other options are given.
            ClaimLost: If the claim has ended by itself.
        """
        self._check_open()
        return self.sync(self._set_bounds, adapted(self.view, minimum, maximum, others))

    @property
    def plan(self) -> set[Any]:
        """Names of the workers the claim wants."""
        return planned(self.view)

    @property
    def requested(self) -> set[Any]:
        """Names of the workers granted to it."""
        return granted(self.view)

    async def _set_bounds(self, bounds: WorkerBounds) -> None:
        if self.status != Status.running:
            await self._start()
        pool, claim_id = self._opening.pool, self._opening.view_now.id
        self._opening.view = await pool.background.bridge(
            lambda _say: pool.client.scale(claim_id, bounds.minimum, bounds.maximum),
            self._voice.say,
        )

    async def _wait_for_workers(
        self,
        n_workers: int = 0,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class's name
    ) -> None:
        """Wait until this many are registered, told by the scheduler instead of asking it."""
        self._check_open()
        if self.status != Status.running:
            await self._start()
        if not await self._arrivals.wait_until(lambda: self._has_workers(n_workers), timeout):
            raise Unavailable(
                f"Only {len(self.observed)} of {n_workers} workers came within"
                f" {format_duration(timeout or 0)}.",
                hint="See why: jupyter gpupool claims",
            )
        self._check_open()

    def _has_workers(self, count: int) -> bool:
        return len(self.observed) >= count or self.status != Status.running

    def _update_worker_status(self, op: str, msg: Any) -> None:
        # A holder comes and goes as workers do, and its coming may not have been heard.
        if op == "add":
            seen = msg["workers"].items()
            told = {a: worker for a, worker in seen if worker.get("name") != HOLDER_NAME}
            super()._update_worker_status(op, {**msg, "workers": told})
        elif msg in self.scheduler_info["workers"]:
            super()._update_worker_status(op, msg)
        self._arrivals.tell()
