"""Applying a policy: checked whole, kept as a revision, in force from the same batch on.

Called at the manager's start with the file its admin named, and by `policy_changes`.
"""

from dataclasses import dataclass

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.policy import located, parse_policy

from .in_force import PolicyInForce
from .policy_tree import check_against, tree_of
from .records import PolicyRevision
from .standing import View
from .unit import UnitOfWork
from .used import held_anew


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPolicy:
    """An admin wants another policy.

    Attributes:
        source: The document.
        by: Who wants it.
        comment: Why, in their words.
        restores: The earlier revision whose document it is, if they want that back.
    """

    source: str
    by: UserName
    comment: str = ""
    restores: int | None = None


def apply_policy(unit: UnitOfWork, command: ApplyPolicy) -> int:
    """Put a policy into force; one that is in force already changes nothing.

    Returns:
        Its revision.

    Raises:
        BadRequest: If it makes no sense, or guarantees more than the hosts that are there have.
    """
    before, number = unit.policy, unit.policy.next_revision
    if before.revision and command.source == before.source and before.refused is None:
        return before.revision
    after = in_force(command.source, number)
    check_fits(after, unit)
    unit.policy = after
    unit.new_policies.append(_revision(unit, command, number))
    for record in list(held_anew(unit, unit.now.timestamp())):
        unit.usage[record.leaf] = record
    unit.record(EventKind.POLICY_APPLIED, _told(command, number))
    unit.replan = True
    return number


def in_force(source: str, revision: int) -> PolicyInForce:
    """Read a document and grow its tree.

    Raises:
        BadRequest: If it makes no sense.
    """
    policy = parse_policy(source)
    try:
        tree = tree_of(policy)
    except BadRequest as error:
        raise located(source, error) from error
    return PolicyInForce(policy=policy, tree=tree, revision=revision, source=source)


def check_fits(policy: PolicyInForce, view: View) -> None:
    """Refuse a policy that guarantees more than the hosts that are there have.

    Raises:
        BadRequest: With the numbers.
    """
    try:
        check_against(policy.tree, view.hosts.values())
    except BadRequest as error:
        raise located(policy.source, error) from error


def _revision(unit: UnitOfWork, command: ApplyPolicy, number: int) -> PolicyRevision:
    return PolicyRevision(
        revision=number,
        at=unit.now,
        by=command.by,
        source=command.source,
        comment=command.comment,
        restores=command.restores,
    )


def _told(command: ApplyPolicy, number: int) -> str:
    done = f"{command.by} applied revision {number} of the policy"
    if command.restores is not None:
        done = f"{command.by} went back to revision {command.restores} of the policy, now {number}"
    return f"{done}: {command.comment.rstrip('.')}." if command.comment else f"{done}."
