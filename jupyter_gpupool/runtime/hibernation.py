"""Hibernates and resumes a claim from within its scheduler, as it is ordered to.

Used by `scheduler`; a plugin of distributed's Scheduler. The one rule: a result leaves a place only
when another worker has said that it keeps it. So whatever dies half way, a result is where it was,
or somewhere else, or its loss is told.

Results come back at once, and not when they are asked for: they belong beside the devices, and the
holder's memory and disk are wanted by the next claim. A task need not wait for that: what it needs
it fetches itself, in between.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from distributed.core import Status
from distributed.diagnostics.plugin import SchedulerPlugin

from jupyter_gpupool.protocol.keeping import (
    HOLDER_NAME,
    MOST_UNKEPT_TOLD,
    Keeping,
    KeepPhase,
    Unkept,
    UnkeptReason,
    Wish,
)
from jupyter_gpupool.protocol.launch import Orders

from .claim_scheduler import ClaimScheduler
from .interruption import CalledOff, Interruption
from .members import Members
from .moving import MESSAGE_BYTES, Move, Mover, Outcome, Refusals, batches, spread
from .next_step import Standing, Step, next_step
from .standstill import Standstill, copies_left_alone
from .survey import Survey, survey

_BACK_BYTES = 32 * 1024 * 1024
"""A message on the way back: small, for what a task waits for comes in between."""
_TRIES_WITHOUT_PROGRESS = 50
_TRY_AGAIN_S = 0.1
_TELL_WITHIN_S = 0.25

logger = logging.getLogger("distributed.scheduler")


class _Failed(Exception):
    """It cannot be done now; the message is a sentence for a user."""


class Hibernation(SchedulerPlugin):
    """Where a scheduler's results are, and how they get there.

    Args:
        changed: Called with each change that the agent should hear of.
    """

    name = "gpupool-hibernation"

    def __init__(
        self, scheduler: ClaimScheduler, members: Members, changed: Callable[[Keeping], None]
    ) -> None:
        self._scheduler: Any = scheduler
        self._members = members
        self._changed = changed
        self._mover = Mover(scheduler)
        self._standstill = Standstill(scheduler)
        self._interruption = Interruption()
        self._news = asyncio.Event()
        self._orders = Orders()
        self._phase = KeepPhase.AWAKE
        self._survey: Survey | None = None
        self._refused: Refusals = {}
        self._failed = False
        self._again = 0
        self._gone = 0
        self._wanted = False
        self._problem = ""
        self._dismissed = ""
        self._to_tell: asyncio.TimerHandle | None = None
        scheduler.before_removal = self._note_loss
        scheduler.status_changed = self._news.set

    @property
    def keeping(self) -> Keeping:
        """All that the agent hears of it."""
        found, holder = self._survey, self._scheduler.holder
        unkept = (*(found.unkept if found else ()), *_unkept(self._refused))
        return Keeping(
            phase=self._phase,
            wish=self._orders.wish,
            surveyed=found is not None,
            results=found.results if found else 0,
            result_bytes=found.nbytes if found else 0,
            held=len(holder.has_what) if holder else 0,
            held_bytes=holder.nbytes if holder else 0,
            unkept=unkept[:MOST_UNKEPT_TOLD],
            unkept_count=len(unkept),
            again=self._again,
            gone=self._gone,
            wanted=self._wanted,
            problem=self._problem,
        )

    # --- what happens

    def obey(self, orders: Orders) -> None:
        """Take on these orders in place of the earlier ones."""
        before, self._orders = self._orders, orders
        if (before.wish, before.quota_bytes) != (orders.wish, orders.quota_bytes):
            self._begin_anew()

    def add_worker(self, scheduler: Any, worker: str) -> None:
        """A worker or the holder has registered (distributed calls this)."""
        is_holder = scheduler.workers[worker].name == HOLDER_NAME
        if is_holder or self._orders.wish is not Wish.HIBERNATED:
            # What failed may work now.
            self._failed, self._refused = False, {}
        self._news.set()

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """A worker or the holder is gone (distributed calls this)."""
        del scheduler, worker
        self._news.set()

    def update_graph(self, scheduler: Any, **_: Any) -> None:
        """Tasks were submitted (distributed calls this).

        From the wish on: what came while results were on their way would else wake nobody.
        """
        del scheduler
        if self._orders.wish is Wish.HIBERNATED and not self._wanted:
            self._wanted = True
            self._tell()

    async def run(self) -> None:
        """Take one step after the other, for as long as the scheduler lives."""
        while True:
            await self._news.wait()
            self._news.clear()
            while (step := next_step(self._standing())) is not None:
                await self._take(step)

    def _begin_anew(self) -> None:
        self._survey, self._refused = None, {}
        self._failed, self._problem = False, ""
        if self._orders.wish is Wish.HIBERNATED:
            self._again = self._gone = 0
            self._wanted = False
        if self._phase in (KeepPhase.REFUSED, KeepPhase.LOST):
            self._phase = KeepPhase.AWAKE
        self._interruption.call_off()
        self._news.set()
        self._tell()

    def _standing(self) -> Standing:
        holder = self._scheduler.holder
        return Standing(
            wish=self._orders.wish,
            phase=self._phase,
            surveyed=self._survey is not None,
            failed=self._failed,
            has_holder=holder is not None,
            has_workers=bool(self._targets()),
            held=len(holder.has_what) if holder else 0,
        )

    # --- steps

    async def _take(self, step: Step) -> None:
        try:
            await _STEPS[step](self)
        except CalledOff:
            pass
        except _Failed as problem:
            self._failed, self._problem = True, str(problem)
        except Exception as error:
            # A fault of ours, or of a distributed that differs: tell it, and do not try for ever.
            logger.exception("A step of hibernation failed")
            self._failed, self._problem = True, f"{type(error).__name__}: {error}"
        self._tell()

    async def _look(self) -> None:
        quota_bytes = self._orders.quota_bytes
        self._survey = await self._interruption.unless(survey(self._scheduler, quota_bytes))
        if self._survey.unkept and self._orders.wish is Wish.HIBERNATED:
            self._phase = KeepPhase.REFUSED

    async def _hibernate(self) -> None:
        self._set_phase(KeepPhase.HIBERNATING)
        try:
            with copies_left_alone(self._scheduler):
                await self._interruption.unless(self._fill_holder())
                self._phase = KeepPhase.HIBERNATED
                # All at once, so that nothing ends in between; what runs there runs again later.
                going = [self._members.dismiss(s.address) for s in self._scheduler.real_workers]
                await asyncio.gather(*going)
        finally:
            if self._phase is KeepPhase.HIBERNATING:
                self._phase = KeepPhase.REFUSED if self._refused else KeepPhase.AWAKE
            if self._phase is not KeepPhase.HIBERNATED:
                self._standstill.end()

    async def _fill_holder(self) -> None:
        tries = 0
        self._standstill.begin()
        while missing := self._not_held():
            if (holder := self._scheduler.holder) is None:
                raise _Failed("The holder ended before it had all results: nothing was changed.")
            actors = {task.key: (UnkeptReason.ACTOR.value, "") for task in missing if task.actor}
            outcome = Outcome(refused=actors)
            if not actors:
                moves = batches(_to_holder(missing, holder), MESSAGE_BYTES)
                outcome = await self._mover.carry_out(moves, done=lambda _: self._tell_soon())
            if outcome.refused:
                self._refused = outcome.refused
                raise _Failed("Some results cannot be kept: nothing was changed.")
            tries = await self._count_try(tries, outcome.kept)
            self._standstill.begin()

    async def _resume(self) -> None:
        self._set_phase(KeepPhase.RESUMING)
        with copies_left_alone(self._scheduler):
            await self._interruption.unless(self._empty_holder())
        if (holder := self._scheduler.holder) is not None and holder.has_what:
            # Workers went away again, or could not take some: those wait where they are.
            self._failed = bool(self._refused)
            return
        self._phase = KeepPhase.AWAKE
        if holder is not None:
            self._dismissed = holder.address
            await self._scheduler.remove_worker(
                holder.address, expected=True, close=True, stimulus_id=_stimulus()
            )

    async def _empty_holder(self) -> None:
        tries, self._refused = 0, {}
        while (holder := self._scheduler.holder) is not None:
            self._release(task.key for task in holder.has_what)
            left = [task for task in holder.has_what if task.key not in self._refused]
            targets = [(state.address, state.nbytes) for state in self._targets()]
            if not left or not targets:
                return
            moves = spread({task.key: _size(task) for task in left}, holder.address, targets)
            outcome = await self._mover.carry_out(
                batches(moves, _BACK_BYTES), done=lambda batch: self._release(batch.keys)
            )
            self._refused |= outcome.refused
            tries = await self._count_try(tries, outcome.kept + len(outcome.refused))

    # --- results

    async def _count_try(self, tries: int, progress: int) -> int:
        """Give up what does not get on, such as a worker that has lost what it should have."""
        if progress:
            return 0
        if tries >= _TRIES_WITHOUT_PROGRESS:
            raise _Failed("Some results could not be fetched from where they are.")
        await asyncio.sleep(_TRY_AGAIN_S)
        return tries + 1

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
            self._scheduler.request_remove_replicas(
                holder.address, elsewhere, stimulus_id=_stimulus()
            )
        self._tell_soon()

    def _targets(self) -> list[Any]:
        return [s for s in self._scheduler.real_workers if s.status is Status.running]

    def _note_loss(self, state: Any) -> None:
        """Count what goes with a holder that ends by itself."""
        if state.name != HOLDER_NAME or state.address == self._dismissed:
            return
        alone = [task for task in state.has_what if len(task.who_has) == 1]
        again = sum(task.run_spec is not None for task in alone)
        self._again += again
        self._gone += len(alone) - again
        if alone:
            self._problem = _loss(again, len(alone) - again)
        if self._phase is KeepPhase.HIBERNATED:
            is_lost = bool(alone) and self._orders.wish is Wish.HIBERNATED
            self._set_phase(KeepPhase.LOST if is_lost else KeepPhase.AWAKE)

    # --- telling

    def _set_phase(self, phase: KeepPhase) -> None:
        self._phase = phase
        self._tell()

    def _tell(self) -> None:
        if self._to_tell is not None:
            self._to_tell.cancel()
            self._to_tell = None
        self._changed(self.keeping)

    def _tell_soon(self) -> None:
        """How far it is; not with each message."""
        if self._to_tell is None:
            loop = asyncio.get_running_loop()
            self._to_tell = loop.call_later(_TELL_WITHIN_S, self._tell)


_STEPS = {
    Step.SURVEY: Hibernation._look,  # noqa: SLF001 - its own table
    Step.HIBERNATE: Hibernation._hibernate,  # noqa: SLF001
    Step.RESUME: Hibernation._resume,  # noqa: SLF001
}


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


def _unkept(refused: Refusals) -> list[Unkept]:
    return [
        Unkept(key=str(key), reason=UnkeptReason(reason), detail=detail)
        for key, (reason, detail) in refused.items()
    ]


def _loss(again: int, gone: int) -> str:
    return (
        "The holder ended and took results along:"
        f" {again} that are computed again, {gone} that are gone for good."
    )


def _size(task: Any) -> int:
    return max(0, int(task.get_nbytes()))


def _stimulus() -> str:
    return f"gpupool-hibernation-{time.time()}"
