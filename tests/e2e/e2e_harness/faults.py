"""What is struck, when, how: the cases of the fault scenario and the steps that lead to them.

Called by `fault_case` and the tests of faults. Each step brings a user's claim to one moment of its
life and comes back at once, so that the strike falls into that moment.
"""

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from signal import Signals

from waiting import eventually

from .processes import Process
from .running_pool import RunningPool
from .user import User

DEVICES = 4
TASKS = 30
TASK_S = 0.05
EXPECTED = sum(number * number for number in range(TASKS))


class Role(StrEnum):
    """Which process is struck."""

    CLIENT = "client"
    MANAGER = "manager"
    AGENT = "agent"
    ZYGOTE = "zygote"
    SCHEDULER = "scheduler"
    WORKER = "worker"


class Moment(StrEnum):
    """A moment of a claim's life."""

    REQUESTED = "requested"
    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    GROWING = "growing"
    SHRINKING = "shrinking"
    RELEASING = "releasing"


class Blow(StrEnum):
    """How it is struck."""

    KILL = "kill"
    PAUSE = "pause"
    """Stopped, and continued a moment later."""
    FREEZE = "freeze"
    """Stopped for good."""


@dataclass(frozen=True, slots=True)
class Case:
    """One strike."""

    role: Role
    moment: Moment
    blow: Blow

    def __str__(self) -> str:
        return f"{self.role}-{self.moment}-{self.blow}"

    @property
    def number(self) -> Signals:
        """The signal that does it."""
        return Signals.SIGKILL if self.blow is Blow.KILL else Signals.SIGSTOP


_NOT_THERE_YET = {(Role.SCHEDULER, Moment.REQUESTED), (Role.WORKER, Moment.REQUESTED)}


def cases(seed: int, rounds: int, roles: Collection[Role]) -> list[Case]:
    """Each of these roles at every moment, once a round, the blows dealt out by the seed.

    Three rounds in a row deal each blow to each pair.
    """
    chance = random.Random(seed)
    found: list[Case] = []
    pairs = [(r, m) for r in Role for m in Moment if (r, m) not in _NOT_THERE_YET]
    first = {pair: chance.randrange(len(Blow)) for pair in pairs}
    for turn in range(rounds):
        chance.shuffle(pairs)
        for role, moment in pairs:
            blow = tuple(Blow)[(first[role, moment] + turn) % len(Blow)]
            found.append(Case(role, moment, blow))
    return [case for case in found if case.role in roles]


@dataclass(slots=True)
class Scene:
    """A claim on its way through one case.

    Attributes:
        asked: Whether the user still owes an answer to its last order.
        wanted: How many workers the claim ends up with.
        blocker: A claim that holds every device, so that this one waits.
    """

    pool: RunningPool
    user: User
    role: Role
    name: str
    claim_id: str = ""
    asked: bool = False
    wanted: int = 1
    blocker: str = ""
    _target: Process | None = None

    def aim(self) -> Process:
        """The process to strike: the one there was when it was first asked for."""
        if self._target is None:
            self._target = self._find()
        return self._target

    def _find(self) -> Process:
        role = self.role
        if role is Role.CLIENT:
            return self.user.process
        if role is Role.ZYGOTE:
            return eventually(self.pool.zygotes, 10, "there is a zygote")[0]
        if role is Role.SCHEDULER:
            return self.pool.scheduler_of(self.claim_id)
        if role is Role.WORKER:
            return self.pool.worker_of(self.claim_id)
        found = self.pool.manager if role is Role.MANAGER else self.pool.agent
        assert found is not None
        return found


def requested(scene: Scene) -> None:
    """It waits, for another claim holds every device."""
    scene.blocker = scene.pool.api.claim(DEVICES)
    scene.pool.wait_phase(scene.blocker, "running")
    _ask_claim(scene)


def starting(scene: Scene) -> None:
    """It has just been acknowledged."""
    _ask_claim(scene)


def idle(scene: Scene) -> None:
    """It runs, and nothing runs on it."""
    _ask_claim(scene)
    scene.user.answer()
    scene.asked = False


def busy(scene: Scene) -> None:
    """Its worker is in the middle of its tasks."""
    idle(scene)
    scene.user.ask("submit", claim_id=scene.claim_id, tasks=TASKS, seconds=TASK_S)


def growing(scene: Scene) -> None:
    """It has just been scaled up."""
    idle(scene)
    _scale(scene, 2)


def shrinking(scene: Scene) -> None:
    """It has just been scaled down, with results on both workers."""
    growing(scene)
    scene.pool.wait_workers(scene.claim_id, 2)
    scene.user.ask("submit", claim_id=scene.claim_id, tasks=TASKS, seconds=TASK_S)
    _scale(scene, 1)


def releasing(scene: Scene) -> None:
    """Its user has just given it back."""
    busy(scene)
    # A release is quick: afterwards there might be nothing left to strike.
    scene.aim()
    scene.user.tell("close", claim_id=scene.claim_id)
    scene.asked = True


REACH: Mapping[Moment, Callable[[Scene], None]] = {
    Moment.REQUESTED: requested,
    Moment.STARTING: starting,
    Moment.IDLE: idle,
    Moment.BUSY: busy,
    Moment.GROWING: growing,
    Moment.SHRINKING: shrinking,
    Moment.RELEASING: releasing,
}


def _ask_claim(scene: Scene) -> None:
    scene.user.tell("claim", gpus=1, name=scene.name)
    scene.asked = True

    def look() -> str:
        found = [c["id"] for c in scene.pool.api.claims() if c["name"] == scene.name]
        return str(found[0]) if found else ""

    scene.claim_id = eventually(look, 15, f"{scene.name} is known")
    scene.pool.journal.claims[scene.name] = scene.claim_id


def _scale(scene: Scene, workers: int) -> None:
    scene.user.ask("scale", claim_id=scene.claim_id, workers=workers)
    scene.wanted = workers
