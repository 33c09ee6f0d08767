"""Why each waiting claim waits, kept from the last pass and made anew when somebody asks.

With thousands of claims in line an explanation of all costs tens of milliseconds, so it is made at
most once a second, beside the loop.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.scheduling.decisions import Decisions, Waiting

_LOG = logging.getLogger(__name__)
_FRESH_FOR_S = 1.0

Pass = Callable[[], Decisions]


class Waits:
    """Place and reason of each waiting claim.

    Args:
        ask: Looks at the books, and gives the pass over what it saw, to be run in a thread.
        monotonic: A clock in seconds.
        failed: Told of a pass that failed for a defect.
    """

    def __init__(
        self,
        ask: Callable[[], Pass],
        monotonic: Callable[[], float],
        failed: Callable[[Exception], None],
    ) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._failed = failed
        self._waits: Mapping[ClaimId, Waiting] = {}
        self._is_stale = False
        self._made_at = monotonic()
        self._lock = asyncio.Lock()

    def take(self, decided: Decisions | None) -> None:
        """Keep what a pass said; None means that what is kept may no longer be true."""
        if decided is None:
            self._is_stale = True
            return
        self._waits = {wait.claim_id: wait for wait in decided.waits}
        self._is_stale = False
        self._made_at = self._monotonic()

    def of(self, claim_id: ClaimId) -> Waiting | None:
        """Why it waits, as last explained."""
        return self._waits.get(claim_id)

    @property
    def last(self) -> Mapping[ClaimId, Waiting]:
        """All that wait, as last explained; replaced as a whole by the next pass."""
        return self._waits

    async def refresh(self) -> None:
        """Explain anew, unless what is kept is true or young."""
        async with self._lock:
            if self._is_stale and self._monotonic() - self._made_at >= _FRESH_FOR_S:
                await self._make_anew()

    async def _make_anew(self) -> None:
        try:
            self.take(await asyncio.to_thread(self._ask()))
        except Exception as error:  # noqa: BLE001 - what was said before is better than no answer
            _LOG.exception("Why claims wait could not be explained anew")
            self._failed(error)
            self._made_at = self._monotonic()
