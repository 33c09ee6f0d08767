"""An admin changes the policy, or goes back to an earlier revision, and learns what that means.

Called through `Service.execute` by the API. The change itself is made by `policy`.
"""

from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter

from jupyter_gpupool.pool.errors import Conflict
from jupyter_gpupool.pool.ids import UserName

from .once import OnceKey, once
from .policy import ApplyPolicy, apply_policy
from .policy_effects import effects_of
from .unit import UnitOfWork

DEFAULT_SOURCE: Final = """\
[queues.default]
users = ["*"]

[scheduling]
reclaim = false
"""
"""What holds as long as nobody applied a policy, as a document: revision 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePolicy:
    """An admin wants another policy.

    Attributes:
        expected: The revision they have seen; None changes whichever is in force.
        restores: The earlier revision whose document it is, if they want that back.
    """

    source: str
    by: UserName
    comment: str = ""
    expected: int | None = None
    restores: int | None = None
    key: OnceKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of it.

    Attributes:
        revision: That is in force now.
        is_new: False if the same document was in force before.
        effects: What it means for claims that were there, in sentences.
    """

    revision: int
    is_new: bool
    effects: tuple[str, ...] = ()


_APPLIED: Final = TypeAdapter(Applied)


def change_policy(unit: UnitOfWork, command: ChangePolicy) -> Applied:
    """Put it into force.

    Raises:
        Conflict: If another revision is in force than the admin has seen.
        BadRequest: If the document makes no sense, or guarantees more than there is.
    """
    answer = once(unit, command.key, lambda: _APPLIED.dump_json(_change(unit, command)).decode())
    return _APPLIED.validate_json(answer)


def _change(unit: UnitOfWork, command: ChangePolicy) -> Applied:
    before = unit.policy
    if command.expected is not None and command.expected != before.revision:
        raise Conflict(
            f"Revision {before.revision} of the policy is in force, and not {command.expected}.",
            hint="Look at what has changed since, and apply yours again.",
        )
    revision = apply_policy(
        unit,
        ApplyPolicy(
            source=command.source,
            by=command.by,
            comment=command.comment,
            restores=command.restores,
        ),
    )
    if revision == before.revision:
        return Applied(revision=revision, is_new=False)
    effects = effects_of(unit, before, unit.policy, unit.now.timestamp())
    return Applied(revision=revision, is_new=True, effects=effects)
