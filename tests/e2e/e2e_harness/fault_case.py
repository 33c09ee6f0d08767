"""One case of the fault scenario, played on a pool that the next case uses as well.

Called by test_faults.py and test_faults_below.py: one pool, one user's script that is started again
only when it was struck itself. A case ends with its claim ended, nothing left of it and every
device free: the next case proves it.
"""

from collections.abc import Callable
from itertools import count
from signal import Signals

import pytest
from waiting import eventually

from .devices import TestDevices
from .faults import DEVICES, EXPECTED, REACH, Blow, Case, Moment, Role, Scene
from .processes import Process
from .running_pool import MakePool, RunningPool, strike
from .user import User, UserFailed

_PAUSE_S = 0.6
_numbers = count(1)


class Stage:
    """The pool and the user's script of this and the next cases.

    A case that fails leaves a pool nobody can trust: the next one gets a new one.
    """

    def __init__(self, make_pool: MakePool, devices: Callable[[int], TestDevices]) -> None:
        self._make = lambda: make_pool(devices(DEVICES)).start()
        self._pool: RunningPool | None = None
        self._user: User | None = None
        self.is_clean = True

    def pool(self) -> RunningPool:
        """A pool that is as it should be."""
        if self._pool is None or not self.is_clean:
            self.close()
            self._pool = self._make()
        self.is_clean = False
        return self._pool

    def user(self) -> User:
        """A user's script that has not been struck."""
        assert self._pool is not None
        if self._user is None or not self._user.process.lives or self._user.process.is_stopped:
            self._user = self._pool.user()
        return self._user

    def close(self) -> None:
        """End the pool."""
        if self._pool is not None:
            self._pool.close()
        self._pool = self._user = None


def play(stage: Stage, case: Case) -> None:
    """Bring a claim to its moment, strike, and see that every promise is kept.

    Raises:
        AssertionError: If one is not.
    """
    pool = stage.pool()
    scene = Scene(pool, stage.user(), case.role, name=f"{case}-{next(_numbers)}")
    if (case.role, case.blow) == (Role.ZYGOTE, Blow.FREEZE):
        _warm_up(pool)
    REACH[case.moment](scene)
    target = scene.aim()
    strike(target, case.number)
    _recover(pool, case, target)
    _unblock(scene)
    _go_on(scene, case)
    pool.end(scene.claim_id)
    _tidy(scene, case, target)
    pool.wait_free(DEVICES)
    pool.check()
    stage.is_clean = True


def _warm_up(pool: RunningPool) -> None:
    """Let the zygote have forked once: one that still imports is given a minute, not seconds."""
    claim_id = pool.api.claim()
    pool.wait_phase(claim_id, "running", deadline_s=30)
    pool.end(claim_id)


def _recover(pool: RunningPool, case: Case, target: Process) -> None:
    """What an operator or the machine does about it, and nothing more."""
    if case.blow is not Blow.KILL:
        target.wait_gone(_PAUSE_S)
    if case.blow is Blow.PAUSE:
        target.send(Signals.SIGCONT)
    elif case.blow is Blow.FREEZE and case.role in (Role.MANAGER, Role.AGENT):
        strike(target, Signals.SIGKILL)
    if target.lives:
        return
    if case.role is Role.MANAGER:
        pool.start_manager()
        pool.wait_joined(pool.agent)
    elif case.role is Role.AGENT:
        pool.start_agent()


def _unblock(scene: Scene) -> None:
    if scene.blocker:
        scene.pool.end(scene.blocker)


def _go_on(scene: Scene, case: Case) -> None:
    if case.moment is Moment.RELEASING:
        _is_released(scene, case)
    elif case.role is Role.CLIENT and case.blow is not Blow.PAUSE:
        scene.pool.wait_workers(scene.claim_id, scene.wanted)
    elif case.role in (Role.SCHEDULER, Role.WORKER) and case.blow is Blow.FREEZE:
        # Nobody can tell a frozen process from a busy one: it only has to go with its claim.
        return
    elif case.role is Role.SCHEDULER and case.blow is Blow.KILL:
        _runs_again_or_says_why(scene, case)
    else:
        _works(scene, case)


def _is_released(scene: Scene, case: Case) -> None:
    if case.role is Role.MANAGER:
        # Its user is told that nobody answered, or, if it was back in time, that it is done.
        scene.user.settle()
    elif case.role is not Role.CLIENT:
        scene.user.answer()
        scene.pool.wait_ended(scene.claim_id)


def _works(scene: Scene, case: Case) -> None:
    if scene.asked:
        scene.asked = False
        assert scene.user.answer() == scene.claim_id
    scene.pool.wait_workers(scene.claim_id, scene.wanted)
    if case.moment in (Moment.BUSY, Moment.SHRINKING):
        assert scene.user.ask("gather", claim_id=scene.claim_id, timeout=30) == EXPECTED
    assert scene.user.ask("compute", claim_id=scene.claim_id) == 328350
    lost = (case.role, case.blow) == (Role.WORKER, Blow.KILL)
    if lost and case.moment in (Moment.IDLE, Moment.BUSY, Moment.GROWING):
        reasons = " ".join(scene.pool.api.reasons(scene.claim_id))
        assert "killed" in reasons or "signal" in reasons, reasons


def _runs_again_or_says_why(scene: Scene, case: Case) -> None:
    """A scheduler lost before its claim ran is started again; after that the claim ends."""
    if case.moment is Moment.STARTING and _starts_again(scene, case):
        return
    reason = eventually(
        lambda: _end_of(scene), 10, "it says why it ended", context=scene.pool.tell(scene.claim_id)
    )
    assert "scheduler" in reason.lower(), reason
    with pytest.raises(UserFailed):
        _use(scene)
    told = f"Claim {scene.name} has ended: {reason}"
    eventually(lambda: told in scene.user.printed, 5, "the user is told why")


def _starts_again(scene: Scene, case: Case) -> bool:
    try:
        _works(scene, case)
    except UserFailed as error:
        if error.kind != "ClaimLost":
            raise
        return False
    return True


def _end_of(scene: Scene) -> str:
    view = scene.pool.api.view(scene.claim_id)
    return str(view["reason"]) if view["end"] else ""


def _use(scene: Scene) -> None:
    if scene.asked:
        scene.user.answer()
    scene.user.ask("compute", claim_id=scene.claim_id)


def _tidy(scene: Scene, case: Case, target: Process) -> None:
    """Let the user's script forget the claim; a frozen one is of no more use."""
    if case.role is Role.CLIENT and case.blow is not Blow.PAUSE:
        strike(target, Signals.SIGKILL)
        return
    scene.user.settle()
    scene.user.ask("forget", claim_id=scene.claim_id)
