"""Hands a scheduler's results to its holder, and back to workers, one try after the other.

Used by `hibernation`, which says when. The one rule: a result leaves a place only when another
worker has said that it keeps it. What no worker can read stays with the holder: it may be read by a
client, or by a worker that comes later.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from distributed.core import Status

from jupyter_gpupool.protocol.keeping import UnkeptReason

from .claim_scheduler import ClaimScheduler
from .moving import MESSAGE_BYTES, Move, Mover, Outcome, Refusals, batches, spread

_BACK_BYTES = 32 * 1024 * 1024
"""A message on the way back: small, for what a task waits for comes in between."""
_TRIES_WITHOUT_PROGRESS = 50
_TRY_AGAIN_S = 0.1


class NotHanded(Exception):
    """It cannot be done now; the message is a sentence for a user."""


class Handing:
    """The results of one scheduler on their way.

    Args:
        progress: Called now and then while they are.

    Attributes:
        refused: What the holder did not take, and why.
        unread: What no worker could read or take back; the holder has it still.
    """

    def __init__(self, scheduler: ClaimScheduler, progress: Callable[[], None]) -> None:
        self._scheduler: Any = scheduler
        self._progress = progress
        self._mover = Mover(scheduler)
        self._vain: dict[Any, set[str]] = {}
        self.refused: Refusals = {}
        self.unread: Refusals = {}

    async def fill(self, stand_still: Callable[[], None]) -> None:
        """Have the holder keep everything that workers have.

        Args:
            stand_still: Called before each try: what ran on meanwhile may be done.

        Raises:
            NotHanded: If it cannot keep all of it; workers have everything still.
        """
        tries = 0
        self._vain, self.unread = {}, {}
        stand_still()
        while missing := self._not_held():
            if (holder := self._scheduler.holder) is None:
                raise NotHanded("The holder ended before it had all results: nothing was changed.")
            actors = {task.key: (UnkeptReason.ACTOR.value, "") for task in missing if task.actor}
            outcome = Outcome(refused=actors)
            if not actors:
                moves = batches(_to_holder(missing, holder), MESSAGE_BYTES)
                outcome = await self._mover.carry_out(moves, done=lambda _: self._progress())
            if outcome.refused:
                self.refused = outcome.refused
                raise NotHanded("Some results cannot be kept: nothing was changed.")
            tries = await _count_try(tries, outcome.kept)
            stand_still()

    async def empty(self) -> None:
        """Have workers take everything back; each of them is asked once for what others refuse.

        Raises:
            NotHanded: If a result can neither be fetched nor is refused.
        """
        tries = 0
        try:
            while moves := list(self._moves_back()):
                outcome = await self._mover.carry_out(
                    batches(moves, _BACK_BYTES), done=lambda batch: self._release(batch.keys)
                )
                self._note_vain(moves, outcome.refused)
                tries = await _count_try(tries, outcome.kept + len(outcome.refused))
        finally:
            self._forget_read()

    def targets(self) -> list[Any]:
        """The states of workers that can take results now."""
        return [s for s in self._scheduler.real_workers if s.status is Status.running]

    def has_nothing_to_try(self) -> bool:
        """Whether there are workers, and none of them can be asked for anything any more."""
        return bool(self.targets()) and next(self._moves_back(), None) is None

    def _moves_back(self) -> Iterator[Move]:
        holder, targets = self._scheduler.holder, self.targets()
        if holder is None:
            return
        self._release(task.key for task in holder.has_what)
        if not targets:
            return
        new = {task.key: _size(task) for task in holder.has_what if task.key not in self._vain}
        yield from spread(new, holder.address, [(s.address, s.nbytes) for s in targets])
        for task in holder.has_what:
            vain = self._vain.get(task.key)
            target = next((s for s in targets if vain and s.address not in vain), None)
            if target is not None:
                yield Move(
                    key=task.key,
                    nbytes=_size(task),
                    source=holder.address,
                    target=target.address,
                )

    def _note_vain(self, moves: Iterable[Move], refused: Refusals) -> None:
        for move in moves:
            if move.key in refused:
                self._vain.setdefault(move.key, set()).add(move.target)
        self.unread |= refused

    def _forget_read(self) -> None:
        """Another worker could read it, or nobody wants it any more."""
        holder = self._scheduler.holder
        left = () if holder is None else [task.key for task in holder.has_what]
        self.unread = {key: self.unread[key] for key in left if key in self.unread}

    def _not_held(self) -> list[Any]:
        """Tasks whose results are with workers alone."""
        holder = self._scheduler.holder
        held = {} if holder is None else holder.has_what
        states = self._scheduler.real_workers
        found = {task: None for state in states for task in state.has_what if task not in held}
        return list(found)

    def _release(self, keys: Iterable[Any]) -> None:
        """Let the holder drop those of these results that a worker has now."""
        if (holder := self._scheduler.holder) is None:
            return
        tasks = [task for key in keys if (task := self._scheduler.tasks.get(key)) is not None]
        elsewhere = [t.key for t in tasks if t in holder.has_what and len(t.who_has) > 1]
        if elsewhere:
            stimulus_id = f"gpupool-handing-{time.time()}"
            self._scheduler.request_remove_replicas(
                holder.address, elsewhere, stimulus_id=stimulus_id
            )
        self._progress()


async def _count_try(tries: int, progress: int) -> int:
    """Give up what does not get on, such as a worker that has lost what it should have."""
    if progress:
        return 0
    if tries >= _TRIES_WITHOUT_PROGRESS:
        raise NotHanded("Some results could not be fetched from where they are.")
    await asyncio.sleep(_TRY_AGAIN_S)
    return tries + 1


def _to_holder(tasks: Iterable[Any], holder: Any) -> list[Move]:
    return [
        Move(
            key=task.key,
            nbytes=_size(task),
            source=next(iter(task.who_has)).address,
            target=holder.address,
        )
        for task in tasks
    ]


def _size(task: Any) -> int:
    return max(0, int(task.get_nbytes()))
