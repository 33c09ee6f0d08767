"""One claim from the call to its first result, with the moments on the way.

Used by `claim_latency.py`. The client's moments are taken around its own calls; the manager's are
the times of the claim's events, on the same machine's clock.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from distributed import Client

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim
from jupyter_gpupool.notebook.cluster import ClaimCluster
from jupyter_gpupool.pool.event import EventKind

_TIMEOUT_S = 30.0
_SERVER_SIDE = (
    (EventKind.CLAIM_PENDING, "  manager: claim is in the database"),
    (EventKind.CLAIM_STARTING, "  manager: devices granted"),
    (EventKind.CLAIM_RUNNING, "  manager: scheduler and workers registered"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """When what happened, in seconds after `claim` was called, in order."""

    marks: tuple[tuple[str, float], ...]
    first_result_s: float


class Marks:
    """Moments of one round."""

    def __init__(self) -> None:
        self._start_s, self._start_wall_s = time.perf_counter(), time.time()
        self.at_s: dict[str, float] = {}

    def now(self, name: str) -> None:
        """Something happened just now; its first time counts."""
        self.at_s.setdefault(name, time.perf_counter() - self._start_s)

    def on_wall_clock(self, name: str, wall_s: float) -> None:
        """The manager says when something happened; its first time counts."""
        self.at_s.setdefault(name, wall_s - self._start_wall_s)

    def timed(
        self, name: str, call: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        """The same call, noting when it is answered."""

        async def noting(*args: Any, **more: Any) -> Any:
            answer = await call(*args, **more)
            self.now(name)
            return answer

        return noting


def claim_once(pool: Pool, workers: int) -> Round:
    """Claim, connect, get a result, give it back."""
    posting, connecting = pool.client.request_claim, pool.client.connection
    marks = Marks()
    pool.client.request_claim = marks.timed("POST answered", posting)  # type: ignore[method-assign]
    pool.client.connection = marks.timed("certificate fetched", connecting)  # type: ignore[method-assign]
    try:
        with claim(workers, pool=pool, quiet=True, timeout=_TIMEOUT_S) as cluster:
            marks.now("claim returned, cluster connected")
            with Client(cluster, set_as_default=False) as client:
                marks.now("Client connected")
                assert client.submit(sum, [40, 2], pure=False).result(timeout=_TIMEOUT_S) == 42
                marks.now("first result")
                first_result_s = marks.at_s["first result"]
            _add_the_managers(pool, cluster, marks)
    finally:
        pool.client.request_claim, pool.client.connection = posting, connecting  # type: ignore[method-assign]
    return Round(
        marks=tuple(sorted(marks.at_s.items(), key=lambda mark: mark[1])),
        first_result_s=first_result_s,
    )


def _add_the_managers(pool: Pool, cluster: ClaimCluster, marks: Marks) -> None:
    events = pool.background.run(lambda _say: pool.client.events(claim=cluster.claim_id))
    for kind, name in _SERVER_SIDE:
        for event in events:
            if event.kind is kind:
                marks.on_wall_clock(name, event.at.timestamp())
    scheduler_up = [event for event in events if event.kind is EventKind.CLAIM_STARTING][1:]
    if scheduler_up:
        marks.on_wall_clock("  manager: scheduler listens", scheduler_up[0].at.timestamp())
