"""The policy: who belongs to which queue, what queues are given, how urgent claims may be.

Read from the admin's document by `protocol.policy`, kept in revisions by the manager. Frozen; that
its queues form a tree is checked where the tree is grown, in `scheduling.queue_checks`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from .errors import BadRequest, NotAllowed
from .hibernation import HibernationTerms
from .idle_rule import IdleRule
from .ids import UserName
from .request import Priority
from .rules import Rules

EVERYBODY: Final = "*"
"""Among the users of a queue: whoever there is."""
DEFAULT_QUEUE: Final = "default"
_RANKS: Final = {Priority.INTERACTIVE: 200, Priority.NORMAL: 100, Priority.BATCH: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """How much of everything; what is None is not said: no guarantee, or no limit.

    Attributes:
        devices: Thousandths of a device.
        cpu: Thousandths of a core.
        memory_bytes: Of hosts' memory.
        models: Thousandths of devices whose model contains a word, by that word in lower case.
    """

    devices: int | None = None
    cpu: int | None = None
    memory_bytes: int | None = None
    models: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTerms:
    """What each user of a queue may have at most; None is no limit.

    Attributes:
        devices: Held at once, in thousandths of a device.
        claims: Open at once.
        device_s: Device-seconds used within one period.
        period_s: The length of that period; periods begin at multiples of it since 1970 (UTC).
    """

    devices: int | None = None
    claims: int | None = None
    device_s: int | None = None
    period_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTerms:
    """What the policy says of one queue.

    Attributes:
        parent: The queue it belongs to, or None at the top.
        weight: Its part of the surplus among its siblings; 0 gets none.
        priority: The group in which it stands for the surplus; a higher one is served first.
        highest: A claim here counts as this priority class at most; "" is no ceiling.
        reclaim_min_runtime_s: How long a claim here keeps its leases when other queues want them;
            None: as the queue above says.
        own_min_runtime_s: The same when a claim of this very queue wants them.
        users: Who may claim here, by name; `EVERYBODY` is whoever there is.
        groups: Whose members may.
        leads: Who may reserve devices for it and for the queues below.
    """

    name: str
    parent: str | None = None
    guarantee: Resources = field(default_factory=Resources)
    limit: Resources = field(default_factory=Resources)
    weight: float = 1.0
    priority: int = 0
    highest: str = ""
    reclaim_min_runtime_s: float | None = None
    own_min_runtime_s: float | None = None
    per_user: UserTerms = field(default_factory=UserTerms)
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """How urgent a claim may be.

    Attributes:
        rank: Claims of a higher one are served first within their queue.
        firm: Its claims are never taken, and so they start only inside their queue's guarantee.
    """

    name: str
    rank: int
    firm: bool = False


BUILT_IN: Final = tuple(PriorityClass(name=name, rank=rank) for name, rank in _RANKS.items())
"""The classes that every pool has; a policy may define them anew and add more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All that the admin says. The default is one queue for everybody, and nothing is reclaimed.

    Attributes:
        queues: In the order of the document.
        groups: Users by the name of their group.
        priorities: Every class there is.
        reclaims: Whether leases are taken back for queues below their share and for claims of
            higher priority; else everybody keeps what they hold.
        grace_s: How long a busy claim has from the notice until its leases are taken.
        idle: What becomes of claims that nobody uses: the first rule that fits decides.
        hibernation: How results of claims without devices are kept.

    Raises:
        BadRequest: If a queue names a group or a priority class that there is not, or a rule on
            idle claims a queue or such a class.
    """

    queues: tuple[QueueTerms, ...] = (QueueTerms(name=DEFAULT_QUEUE, users=(EVERYBODY,)),)
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    priorities: tuple[PriorityClass, ...] = BUILT_IN
    rules: Rules = field(default_factory=lambda: Rules(tells_moves=True, most_moved=4))
    reclaims: bool = False
    grace_s: float = 30.0
    idle: tuple[IdleRule, ...] = ()
    hibernation: HibernationTerms = field(default_factory=HibernationTerms)

    def __post_init__(self) -> None:
        groups = {name for name, _ in self.groups}
        classes = {each.name for each in self.priorities}
        for queue in self.queues:
            _check_known(queue.name, "group", queue.groups, groups)
            _check_known(queue.name, "priority class", filter(None, (queue.highest,)), classes)
        queues = {queue.name for queue in self.queues}
        for number, rule in enumerate(self.idle):
            key = f"idle.rules.{number}.match"
            _check_rule(f"{key}.queues", "queue", rule.match.queues, queues)
            _check_rule(f"{key}.priorities", "priority class", rule.match.priorities, classes)

    def queues_of(self, user: UserName) -> tuple[str, ...]:
        """The queues a user may claim in: those that name them, their groups', then everybody's."""
        mine = {name for name, users in self.groups if user in users}
        ways = (
            [q.name for q in self.queues if user in q.users],
            [q.name for q in self.queues if mine.intersection(q.groups)],
            [q.name for q in self.queues if EVERYBODY in q.users],
        )
        return tuple(dict.fromkeys(name for way in ways for name in way))

    def leads_any(self, user: UserName, queues: Iterable[str]) -> bool:
        """Whether a user is a lead of any of these queues."""
        named = set(queues)
        return any(user in queue.leads for queue in self.queues if queue.name in named)

    def is_lead(self, user: UserName) -> bool:
        """Whether a user is a lead of any queue at all."""
        return any(user in queue.leads for queue in self.queues)

    def queue_for(self, user: UserName, wanted: str) -> str:
        """The queue of a new claim; the user's first one if none is wanted.

        Raises:
            BadRequest: If there is no such queue.
            NotAllowed: If it is not theirs, or none is.
        """
        allowed = self.queues_of(user)
        if not wanted and allowed:
            return allowed[0]
        if wanted in allowed:
            return wanted
        if not allowed:
            raise NotAllowed(
                f"{user} belongs to no queue of this pool.", hint="Ask an admin to add you to one."
            )
        names = " or ".join(f'queue="{name}"' for name in allowed)
        if all(queue.name != wanted for queue in self.queues):
            raise BadRequest(
                f'There is no queue "{wanted}".', field="queue", hint=f"Claim with {names}."
            )
        raise NotAllowed(f'{user} may not claim in queue "{wanted}".', hint=f"Claim with {names}.")

    def priority_class(self, name: str) -> PriorityClass:
        """The class of that name.

        Raises:
            BadRequest: If there is none.
        """
        for each in self.priorities:
            if each.name == name:
                return each
        names = ", ".join(each.name for each in self.priorities)
        raise BadRequest(
            f'There is no priority "{name}".', field="priority", hint=f"Choose one of {names}."
        )


def _check_known(queue: str, what: str, named: Iterable[str], known: set[str]) -> None:
    for name in named:
        if name not in known:
            raise BadRequest(
                f'Queue "{queue}" names the {what} "{name}", which the policy does not define.',
                field=f"queues.{queue}",
            )


def _check_rule(key: str, what: str, named: Iterable[str], known: set[str]) -> None:
    for name in sorted(named):
        if name not in known:
            raise BadRequest(
                f'{key} names the {what} "{name}", which the policy does not define.', field=key
            )
