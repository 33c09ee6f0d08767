"""Has workers fetch results from each other, in messages of a bounded size, each one answered for.

Used by `hibernation`. A scheduler notes a new place of a result only when the worker there has said
that it keeps it; the old place is not touched here.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from .taking import OPERATION

MESSAGE_BYTES = 64 * 1024 * 1024
_MOST_KEYS = 1000
_AT_ONCE = 2
"""Messages under way for one worker: the one is packed while the other travels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One result, where it is and where it should be.

    Attributes:
        source: Address of a worker that has it.
        target: Address of the worker that should.
    """

    key: Any
    nbytes: int
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one message brings."""

    source: str
    target: str
    keys: tuple[Any, ...]


Refusals = dict[Any, tuple[str, str]]
"""By key, the `UnkeptReason` and its detail."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of moves: how many arrived, and what was refused."""

    kept: int = 0
    refused: Refusals = field(default_factory=dict)


def batches(moves: Iterable[Move], most_bytes: int = MESSAGE_BYTES) -> Iterator[Batch]:
    """Share moves out among messages; what is larger than one has one of its own. Pure."""
    for (source, target), between in groupby(sorted(moves, key=_ends), key=_ends):
        keys: list[Any] = []
        total = 0
        for move in between:
            if keys and (total + move.nbytes > most_bytes or len(keys) == _MOST_KEYS):
                yield Batch(source=source, target=target, keys=tuple(keys))
                keys, total = [], 0
            keys.append(move.key)
            total += move.nbytes
        yield Batch(source=source, target=target, keys=tuple(keys))


def spread(
    sizes: Mapping[Any, int], source: str, targets: Sequence[tuple[str, int]]
) -> Iterator[Move]:
    """Share results out, each to whoever has least by then. Pure.

    Args:
        sizes: The results, and their bytes.
        source: Address of the worker that has them all.
        targets: Addresses, and what is there already in bytes.
    """
    least = [(nbytes, address) for address, nbytes in targets]
    heapq.heapify(least)
    for key, size in sizes.items():
        nbytes, address = heapq.heappop(least)
        heapq.heappush(least, (nbytes + size, address))
        yield Move(key=key, nbytes=size, source=source, target=address)


class Mover:
    """Carries moves out for one scheduler."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    async def carry_out(self, wanted: Iterable[Batch], *, done: Callable[[Batch], None]) -> Outcome:
        """Have everything fetched that can be; a worker that is gone holds up nothing.

        Args:
            wanted: Messages; those between the same two workers go in this order.
            done: Called after each of them.
        """
        outcome = Outcome()
        lanes: dict[tuple[str, str], deque[Batch]] = {}
        for batch in wanted:
            lanes.setdefault((batch.source, batch.target), deque()).append(batch)

        async def work_off(lane: deque[Batch]) -> None:
            while lane:
                batch = lane.popleft()
                await self._fetch(batch, outcome)
                done(batch)

        async with asyncio.TaskGroup() as group:
            for lane in lanes.values():
                for _ in range(_AT_ONCE):
                    group.create_task(work_off(lane))
        return outcome

    async def _fetch(self, batch: Batch, outcome: Outcome) -> None:
        workers = self._scheduler.workers
        if batch.source not in workers or batch.target not in workers:
            # Calling one that is gone takes half a minute to fail.
            return
        try:
            call = getattr(self._scheduler.rpc(batch.target), OPERATION)
            answer = await call(source=batch.source, keys=list(batch.keys))
        except OSError:
            # Its end is noticed elsewhere; what it was to have stays where it is.
            return
        outcome.refused |= answer["refused"]
        outcome.kept += self._note(batch.target, answer["kept"])

    def _note(self, target: str, keys: Iterable[Any]) -> int:
        """A worker has these results now; how many of them anybody still wants."""
        state = self._scheduler.workers.get(target)
        if state is None:
            return 0
        tasks = [self._scheduler.tasks.get(key) for key in keys]
        wanted = [task for task in tasks if task is not None and task.state == "memory"]
        for task in wanted:
            self._scheduler.add_replica(task, state)
        return len(wanted)


def _ends(move: Move) -> tuple[str, str]:
    return move.source, move.target
