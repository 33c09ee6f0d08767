"""What one agent is being asked: sent by its link, answered by it, or given up with the link.

Beside the level-triggered messages: an answer that does not come changes nothing.
"""

import asyncio
from collections.abc import Sequence

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.protocol.link import LogAnswer, LogQuery
from jupyter_gpupool.protocol.using import ProcessLog

Logs = Sequence[ProcessLog]
_MOST_OPEN = 32
"""Each may be answered with a megabyte, and whoever asks may ask for ever."""


class Questions:
    """The questions of one link; at most one answer each counts."""

    def __init__(self) -> None:
        self._last_id = 0
        self._unsent: dict[int, LogQuery] = {}
        self._waiting: dict[int, asyncio.Future[Logs]] = {}

    def ask(self, claim_id: ClaimId, processes: Sequence[str], lines: int) -> asyncio.Future[Logs]:
        """Ask; the answer is cancelled if the link goes or too much is asked already.

        Whoever asked may cancel it too; a question that was not sent by then never is.
        """
        self._last_id += 1
        query = LogQuery(
            id=self._last_id, claim_id=claim_id, processes=tuple(processes), lines=lines
        )
        answer: asyncio.Future[Logs] = asyncio.get_running_loop().create_future()
        if len(self._waiting) >= _MOST_OPEN:
            answer.cancel()
            return answer
        answer.add_done_callback(lambda _: self._drop(query.id))
        self._waiting[query.id] = answer
        self._unsent[query.id] = query
        return answer

    def _drop(self, question: int) -> None:
        self._waiting.pop(question, None)
        self._unsent.pop(question, None)

    def next_unsent(self) -> LogQuery | None:
        """The oldest question that was not sent yet; from now on it counts as sent."""
        oldest = next(iter(self._unsent), None)
        return None if oldest is None else self._unsent.pop(oldest)

    def take(self, answer: LogAnswer) -> None:
        """Hand an answer to whoever asked; one that nobody waits for is dropped."""
        waiting = self._waiting.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer.logs)

    def close(self) -> None:
        """The link is gone: nothing will be answered any more."""
        for answer in list(self._waiting.values()):
            answer.cancel()
