"""What was opened with a token and has to close when the token is void: streams and links."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jupyter_gpupool.manager.clock import Clock

from .caller import Authenticator, Caller

Close = Callable[[], object]


class Sessions:
    """Open streams and links, by the token they were opened with."""

    def __init__(self, clock: Clock, authenticator: Authenticator) -> None:
        self._clock = clock
        self._authenticator = authenticator
        self._open: dict[str, set[Close]] = defaultdict(set)
        self._closed = asyncio.Event()

    @contextmanager
    def opened(self, caller: Caller, close: Close) -> Iterator[None]:
        """Have `close` called when the caller's token is revoked or expires meanwhile."""
        expiry = self._close_on_expiry(caller, close)
        self._open[caller.credential_id].add(close)
        if not self._authenticator.still_counts(caller):
            # Revoked between the request's check and now: nobody would close it later.
            close()
        try:
            yield
        finally:
            if expiry is not None:
                expiry.cancel()
            self._open[caller.credential_id].discard(close)
            if not self._open[caller.credential_id]:
                del self._open[caller.credential_id]
            if not self._open:
                self._closed.set()

    def revoked(self, credential_id: str) -> None:
        """Close everything opened with this token."""
        for close in list(self._open.get(credential_id, ())):
            close()

    async def close_all(self) -> None:
        """Close everything, and wait until it is closed: the manager ends."""
        self._closed.clear()
        for credential_id in list(self._open):
            self.revoked(credential_id)
        if self._open:
            await self._closed.wait()

    def _close_on_expiry(self, caller: Caller, close: Close) -> asyncio.TimerHandle | None:
        if caller.until is None:
            return None
        left_s = (caller.until - self._clock.now()).total_seconds()
        return asyncio.get_running_loop().call_later(max(0.0, left_s), close)
