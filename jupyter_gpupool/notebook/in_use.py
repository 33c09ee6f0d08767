"""What may be asked of a claim one holds: why, its logs, to be kept, to be told before it goes.

Part of `cluster`. Each works in any state of the claim, also after its end; in async code each
returns what is to be awaited.
"""

from abc import abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jupyter_gpupool.pool.errors import Conflict
from jupyter_gpupool.protocol.api import ClaimView

from .answers import Explanation, Logs, explanation_of, kept_for, kept_s, logs_of
from .reclaiming import OnReclaim, Reclaiming
from .terms import Duration
from .voice import Voice

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.client.pools import Pool


class InUse:
    """A claim that is in use.

    Attributes:
        asynchronous: Whether it is called from its own loop.
    """

    _reclaiming: Reclaiming
    _voice: Voice
    asynchronous: bool

    @property
    @abstractmethod
    def pool(self) -> "Pool":
        """The pool it comes from."""

    @property
    @abstractmethod
    def claim_id(self) -> str:
        """The claim's id in the pool; "" before it is requested."""

    def on_reclaim(self, callback: OnReclaim) -> None:
        """Call this, in a thread of its own, whenever something is about to be taken from it."""
        self._reclaiming.add(callback)

    def logs(self, process: str | None = None, lines: int = 100) -> Logs:
        """The last lines of its scheduler and workers, or of one: "scheduler" or a lease's id."""
        logs: Logs = self._ask(lambda client: logs_of(client, self.claim_id, process, lines))
        return logs

    def keep_alive(self, duration: Duration, reason: str = "") -> datetime | None:
        """Have it not taken as idle for "1h" from now on, and say until when; 0 takes that back.

        Raises:
            BadRequest: If that is no time.
            PoolError: If the pool's policy does not allow it.
        """
        for_s = kept_s(duration)
        until: datetime | None = self._ask(
            lambda client: kept_for(client, self.claim_id, for_s, reason)
        )
        return until

    def hibernate(self, reason: str = "") -> ClaimView:
        """Give its devices back and keep its results; its client stays as it is.

        Running tasks run again once it is resumed; finished results stay readable meanwhile.

        Raises:
            Conflict: If it does not run.
        """
        view: ClaimView = self._ask(lambda client: client.hibernate(self.claim_id, reason))
        return view

    def resume(self) -> ClaimView:
        """Have devices for it again as soon as the pool has room.

        Raises:
            Conflict: If it does not hibernate.
        """
        view: ClaimView = self._ask(lambda client: client.resume(self.claim_id))
        return view

    def explain(self) -> Explanation:
        """Why it is where it is: its place in line, what binds it, when it may start."""
        answer: Explanation = self._ask(lambda client: explanation_of(client, self.claim_id))
        return answer

    def _ask(self, ask: "Callable[[PoolClient], Coroutine[Any, Any, object]]") -> Any:
        if not self.claim_id:
            raise Conflict("The claim has not been requested yet.", hint="First: await cluster")
        background, client = self.pool.background, self.pool.client
        if self.asynchronous:
            return background.bridge(lambda _say: ask(client), self._voice.say)
        return background.run(lambda _say: ask(client), self._voice.say)
