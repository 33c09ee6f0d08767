"""The policy as an admin writes it: a TOML document, read key by key into `pool.policy`.

Used by the manager at its start. A key that is not known is refused: a misspelt limit must not be
no limit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from pydantic import Field, ValidationError

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.hibernation import HibernationTerms
from jupyter_gpupool.pool.policy import (
    BUILT_IN,
    Policy,
    PriorityClass,
    QueueTerms,
    Resources,
    UserTerms,
)
from jupyter_gpupool.pool.rules import Moves, Rules, Sharing, SurplusOrder

from .bodies import Body, Words
from .idle_policy import IdleEntry
from .policy_lines import line_of_refusal
from .policy_text import read_toml
from .policy_values import (
    Amount,
    above_zero,
    bytes_of,
    bytes_or_none,
    seconds,
    seconds_or_none,
    thousandths,
)

_Names = tuple[Words, ...]
_HOUR_S = 3600
_LONGEST_SHOWN = 60
_MOST_REFUSALS = 100
_FIRST_QUEUE = 'Write at least one, such as [queues.default] with users = ["*"].'
_LONGEST_GRACE_S = 3600.0


class Amounts(Body):
    """How much of everything: `{gpus = 8, cpus = 64, memory = "512GiB", models = {A100 = 4}}`."""

    gpus: Amount | None = None
    cpus: Amount | None = None
    memory: Words | None = None
    models: dict[str, Amount] = Field(default_factory=dict)

    def to_resources(self, key: str) -> Resources:
        """The same in whole numbers."""
        return Resources(
            devices=thousandths(self.gpus),
            cpu=thousandths(self.cpus),
            memory_bytes=None if self.memory is None else bytes_of(self.memory, f"{key}.memory"),
            models=tuple(sorted((m.lower(), round(n * 1000)) for m, n in self.models.items())),
        )


class PerUser(Body):
    """What each user of a queue may have at most."""

    gpus: Amount | None = None
    claims: Annotated[int, Field(ge=0, strict=True)] | None = None
    gpu_hours: Amount | None = None
    period: Words = "30d"

    def to_terms(self, key: str) -> UserTerms:
        """The same in whole numbers."""
        has_budget = self.gpu_hours is not None
        period_s = above_zero(self.period, f"{key}.period") if has_budget else None
        return UserTerms(
            devices=thousandths(self.gpus),
            claims=self.claims,
            device_s=None if self.gpu_hours is None else round(self.gpu_hours * _HOUR_S),
            period_s=None if period_s is None else max(1, round(period_s)),
        )


class QueueEntry(Body):
    """A queue: `[queues.NAME]`."""

    parent: Words | None = None
    guarantee: Amounts = Field(default_factory=Amounts)
    limit: Amounts = Field(default_factory=Amounts)
    weight: float = 1.0
    priority: Annotated[int, Field(strict=True)] = 0
    highest: Words = ""
    min_runtime: Words | None = None
    own_min_runtime: Words | None = None
    per_user: PerUser = Field(default_factory=PerUser)
    users: _Names = ()
    groups: _Names = ()
    leads: _Names = ()

    def to_terms(self, name: str) -> QueueTerms:
        """The pool's own terms."""
        key = f"queues.{name}"
        return QueueTerms(
            name=name,
            parent=self.parent,
            guarantee=self.guarantee.to_resources(f"{key}.guarantee"),
            limit=self.limit.to_resources(f"{key}.limit"),
            weight=self.weight,
            priority=self.priority,
            highest=self.highest,
            reclaim_min_runtime_s=seconds_or_none(self.min_runtime, f"{key}.min_runtime"),
            own_min_runtime_s=seconds_or_none(self.own_min_runtime, f"{key}.own_min_runtime"),
            per_user=self.per_user.to_terms(f"{key}.per_user"),
            users=self.users,
            groups=self.groups,
            leads=self.leads,
        )


class PriorityEntry(Body):
    """A priority class: `[priorities.NAME]`."""

    rank: Annotated[int, Field(strict=True)]
    firm: bool = False


class SchedulingEntry(Body):
    """`[scheduling]`: what holds for the whole pool."""

    reclaim: bool = True
    grace: Words = "30s"
    half_life: Words = "24h"
    usage_weight: Annotated[float, Field(ge=0, le=100)] = 0.5
    surplus_order: SurplusOrder = SurplusOrder.FAIR_SHARE
    sharing: Sharing = Sharing.SAME_USER
    blocked_for: Words = "10min"
    moves: Moves = Moves.PROPOSED
    most_moved: Annotated[int, Field(ge=1, le=1000, strict=True)] = 4

    def to_rules(self) -> Rules:
        """The pool's own rules."""
        return Rules(
            half_life_s=above_zero(self.half_life, "scheduling.half_life"),
            usage_weight=self.usage_weight,
            surplus_order=self.surplus_order,
            sharing=self.sharing,
            may_move=self.moves is Moves.DONE,
            tells_moves=self.moves is Moves.PROPOSED,
            most_moved=self.most_moved,
            blocked_for_s=seconds(self.blocked_for, "scheduling.blocked_for"),
        )


class HibernationEntry(Body):
    """`[hibernation]`: how results of claims without devices are kept."""

    keep_for: Words = "7d"
    quota: Words = "64GiB"
    quota_per_host: Words | None = None
    quota_per_user: Words | None = None
    memory: Words = "1GiB"
    resume_on_task: bool = True

    def to_terms(self) -> HibernationTerms:
        """The pool's own terms."""
        return HibernationTerms(
            keep_s=above_zero(self.keep_for, "hibernation.keep_for"),
            quota_bytes=bytes_of(self.quota, "hibernation.quota"),
            memory_bytes=bytes_of(self.memory, "hibernation.memory"),
            resumes_itself=self.resume_on_task,
            host_bytes=bytes_or_none(self.quota_per_host, "hibernation.quota_per_host"),
            user_bytes=bytes_or_none(self.quota_per_user, "hibernation.quota_per_user"),
        )


class PolicyDocument(Body):
    """The whole document."""

    queues: dict[Words, QueueEntry] = Field(min_length=1)
    groups: dict[Words, _Names] = Field(default_factory=dict)
    priorities: dict[Words, PriorityEntry] = Field(default_factory=dict)
    scheduling: SchedulingEntry = Field(default_factory=SchedulingEntry)
    idle: IdleEntry = Field(default_factory=IdleEntry)
    hibernation: HibernationEntry = Field(default_factory=HibernationEntry)

    def to_policy(self) -> Policy:
        """The pool's own policy.

        Raises:
            BadRequest: If a size or a time is none, or a group or a class is not defined.
        """
        own = {name: _class(name, entry) for name, entry in self.priorities.items()}
        return Policy(
            queues=tuple(entry.to_terms(name) for name, entry in self.queues.items()),
            groups=tuple(self.groups.items()),
            priorities=tuple(({each.name: each for each in BUILT_IN} | own).values()),
            rules=self.scheduling.to_rules(),
            reclaims=self.scheduling.reclaim,
            grace_s=_grace(self.scheduling.grace),
            idle=self.idle.to_rules(),
            hibernation=self.hibernation.to_terms(),
        )

    def refusals(self) -> Iterator[BadRequest]:
        """What is wrong with a queue or a rule by itself, one for each."""
        yield from (each for name, entry in self.queues.items() if (each := _wrong(entry, name)))
        yield from self.idle.refusals()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a document is worth.

    Attributes:
        refusals: Why it is refused; none if it is not, as far as it can be seen without a pool.
        queues: The policy without its rules on idle claims, so that queues can be looked at though
            a rule is refused; None if it cannot be read.
    """

    refusals: tuple[BadRequest, ...] = ()
    queues: Policy | None = None


def parse_policy(text: str) -> Policy:
    """Read a policy document.

    Raises:
        BadRequest: In one sentence that names the key and what is wrong there; the hint begins
            with the line, where the key stands on one.
    """
    try:
        return _read(text)
    except ValidationError as error:
        raise located(text, _refusal(error.errors(include_url=False)[0])) from error
    except BadRequest as error:
        raise located(text, error) from error


def refusals_of(text: str) -> tuple[BadRequest, ...]:
    """Why a document is refused; none if it is not."""
    return examine(text).refusals


def examine(text: str) -> Examined:
    """Look for each key that is wrong by itself; or else each queue and rule, then the whole.

    Refusals name their lines as those of `parse_policy` do.
    """
    try:
        document = _document(text)
    except ValidationError as error:
        found = tuple(located(text, _refusal(each)) for each in error.errors(include_url=False))
        return Examined(refusals=found)
    except BadRequest as error:
        return Examined(refusals=(located(text, error),))
    refusals = tuple(islice(document.refusals(), _MOST_REFUSALS))
    if not refusals:
        whole = _refused(document)
        refusals = () if whole is None else (whole,)
    without = document.model_copy(update={"idle": IdleEntry()})
    return Examined(
        refusals=tuple(located(text, each) for each in refusals),
        queues=without.to_policy() if _refused(without) is None else None,
    )


def located(text: str, refusal: BadRequest) -> BadRequest:
    """The refusal of a document with its line, where its key stands on one."""
    line = line_of_refusal(text, refusal)
    if line is None or f"line {line}" in str(refusal):
        return refusal
    hint = f"See line {line}. {refusal.hint}".strip()
    return BadRequest(refusal.message, field=refusal.field, hint=hint)


def _wrong(entry: QueueEntry, name: str) -> BadRequest | None:
    try:
        entry.to_terms(name)
    except BadRequest as error:
        return error
    return None


def _refused(document: PolicyDocument) -> BadRequest | None:
    try:
        document.to_policy()
    except BadRequest as error:
        return error
    return None


def _read(text: str) -> Policy:
    return _document(text).to_policy()


def _document(text: str) -> PolicyDocument:
    return PolicyDocument.model_validate(read_toml(text))


def _refusal(of: Mapping[str, Any]) -> BadRequest:
    key = ".".join(_shown(str(part)) for part in of["loc"] if part != "[key]")
    if of["type"] == "extra_forbidden":
        return BadRequest(f'The policy knows no key "{key}".', field=key)
    if key == "queues" and of["type"] == "missing":
        return BadRequest("queues: the policy has no queue.", field=key, hint=_FIRST_QUEUE)
    said = str(of["msg"]).removeprefix("Value error, ")
    if of["type"] == "string_pattern_mismatch":
        said = "it holds what cannot be printed"
    return BadRequest(f"{key or 'The policy'}: {said[:1].lower()}{said[1:]}.", field=key)


def _shown(part: str) -> str:
    """A part of a key so that the sentence about it stays one line that people can read."""
    short = part if len(part) <= _LONGEST_SHOWN else f"{part[:_LONGEST_SHOWN]}…"
    return short if short.isprintable() else ascii(short)


def _class(name: str, entry: PriorityEntry) -> PriorityClass:
    return PriorityClass(name=name, rank=entry.rank, firm=entry.firm)


def _grace(text: str) -> float:
    grace_s = seconds(text, "scheduling.grace")
    if grace_s > _LONGEST_GRACE_S:
        # Whoever waits was promised these devices; nobody may keep them back for long.
        raise BadRequest(
            f"scheduling.grace: {text} is longer than the hour it may be.", field="scheduling.grace"
        )
    return grace_s
