"""Hibernates and resumes a claim from within its scheduler, as it is ordered to.

Used by `scheduler`; a plugin of distributed's Scheduler. How results are handed on is in `handing`:
whatever dies half way, a result is where it was, or somewhere else, or its loss is told.

Results come back at once, and not when they are asked for: they belong beside the devices, and the
holder's memory and disk are wanted by the next claim. A task need not wait for that: what it needs
it fetches itself, in between. What no worker can read stays where it is, and its holder with it,
until nobody wants it any more; the claim is awake all the same.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

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
from .handing import Handing, NotHanded
from .interruption import CalledOff, Interruption
from .members import Members
from .moving import Refusals
from .next_step import Standing, Step, next_step
from .standstill import Standstill, copies_left_alone
from .survey import Survey, survey

_TELL_WITHIN_S = 0.25

logger = logging.getLogger("distributed.scheduler")


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
        self._handing = Handing(scheduler, self._tell_soon)
        self._standstill = Standstill(scheduler)
        self._interruption = Interruption()
        self._news = asyncio.Event()
        self._orders = Orders()
        self._phase = KeepPhase.AWAKE
        self._survey: Survey | None = None
        self._failed = False
        self._left_behind = False
        self._again = 0
        self._gone = 0
        self._wanted = False
        self._problem = ""
        self._dismissed = ""
        self._to_tell: asyncio.TimerHandle | None = None
        scheduler.before_removal = self._note_loss
        scheduler.status_changed = self._take_status

    @property
    def keeping(self) -> Keeping:
        """All that the agent hears of it."""
        found, holder = self._survey, self._scheduler.holder
        # What was asked beforehand is answered alone: what stays with a holder is kept already.
        asked = found.unkept if found else _unkept(self._handing.unread)
        unkept = (*asked, *_unkept(self._handing.refused))
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
            unread=len(holder.has_what) if holder and self._left_behind else 0,
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
            self._failed = self._left_behind = False
            self._handing.refused = {}
        self._news.set()

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """A worker or the holder is gone (distributed calls this)."""
        del scheduler, worker
        self._news.set()

    def _take_status(self) -> None:
        """A worker takes tasks, or does no longer; registered, it may not have done so yet."""
        if self._left_behind:
            self._failed = self._left_behind = False
        self._news.set()

    def update_graph(self, scheduler: Any, **_: Any) -> None:
        """Tasks were submitted (distributed calls this).

        From the wish on: what came while results were on their way would else wake nobody.
        """
        del scheduler
        if self._orders.wish is Wish.HIBERNATED and not self._wanted:
            self._wanted = True
            self._tell()

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        """A task has changed (distributed calls this, of each): was it the last one left behind?"""
        if self._left_behind and start == "memory" != finish:
            del key
            self._news.set()

    async def run(self) -> None:
        """Take one step after the other, for as long as the scheduler lives."""
        while True:
            await self._news.wait()
            self._news.clear()
            while (step := next_step(self._standing())) is not None:
                await self._take(step)

    def _begin_anew(self) -> None:
        self._survey, self._handing.refused = None, {}
        self._failed = self._left_behind = False
        self._problem = ""
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
            has_workers=bool(self._handing.targets()),
            held=len(holder.has_what) if holder else 0,
            left_behind=self._left_behind,
        )

    # --- steps

    async def _take(self, step: Step) -> None:
        try:
            await _STEPS[step](self)
        except CalledOff:
            pass
        except NotHanded as problem:
            self._fail(step, str(problem))
        except Exception as error:
            # A fault of ours, or of a distributed that differs: tell it, and do not try for ever.
            logger.exception("A step of hibernation failed")
            self._fail(step, f"{type(error).__name__}: {error}")
        self._tell()

    def _fail(self, step: Step, problem: str) -> None:
        self._failed, self._problem = True, problem
        if step is Step.RESUME:
            self._leave_behind()

    def _leave_behind(self) -> None:
        """What is with the holder now stays there; until a worker comes nothing else is tried."""
        self._failed = self._left_behind = True
        self._phase = KeepPhase.AWAKE

    async def _look(self) -> None:
        quota_bytes = self._orders.quota_bytes
        self._survey = await self._interruption.unless(survey(self._scheduler, quota_bytes))
        if self._survey.unkept and self._orders.wish is Wish.HIBERNATED:
            self._phase = KeepPhase.REFUSED

    async def _hibernate(self) -> None:
        self._set_phase(KeepPhase.HIBERNATING)
        try:
            with copies_left_alone(self._scheduler):
                filling = self._handing.fill(self._standstill.begin)
                await self._interruption.unless(filling)
                self._phase = KeepPhase.HIBERNATED
                # All at once, so that nothing ends in between; what runs there runs again later.
                going = [self._members.dismiss(s.address) for s in self._scheduler.real_workers]
                await asyncio.gather(*going)
        finally:
            if self._phase is KeepPhase.HIBERNATING:
                self._phase = KeepPhase.REFUSED if self._handing.refused else KeepPhase.AWAKE
            if self._phase is not KeepPhase.HIBERNATED:
                self._standstill.end()

    async def _resume(self) -> None:
        self._left_behind = False
        self._set_phase(KeepPhase.RESUMING)
        with copies_left_alone(self._scheduler):
            await self._interruption.unless(self._handing.empty())
        holder = self._scheduler.holder
        if holder is not None and holder.has_what:
            if self._handing.has_nothing_to_try():
                self._leave_behind()
            return  # else workers came, or went away again: it waits where it is
        self._phase = KeepPhase.AWAKE
        if holder is not None:
            self._dismissed = holder.address
            stimulus_id = f"gpupool-hibernation-{time.time()}"
            await self._scheduler.remove_worker(
                holder.address, expected=True, close=True, stimulus_id=stimulus_id
            )

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
