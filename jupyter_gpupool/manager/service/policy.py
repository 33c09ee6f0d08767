"""Applying a policy: checked whole, kept as a revision, in force from the same batch on.

Called at the manager's start with the file its admin named.
"""

from dataclasses import dataclass

from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.policy import parse_policy

from .in_force import PolicyInForce
from .policy_tree import check_against, tree_of
from .records import PolicyRevision
from .unit import UnitOfWork
from .used import held_anew


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPolicy:
    """An admin wants another policy.

    Attributes:
        source: The document.
        by: Who wants it.
    """

    source: str
    by: UserName


def apply_policy(unit: UnitOfWork, command: ApplyPolicy) -> int:
    """Put a policy into force; one that is in force already changes nothing.

    Returns:
        Its revision.

    Raises:
        BadRequest: If it makes no sense, or guarantees more than the hosts that are there have.
    """
    before, number = unit.policy, unit.policy.revision + 1
    if before.revision and command.source == before.source:
        return before.revision
    after = in_force(command.source, number)
    check_against(after.tree, unit.hosts.values())
    unit.policy = after
    unit.new_policies.append(
        PolicyRevision(revision=number, at=unit.now, by=command.by, source=command.source)
    )
    for record in list(held_anew(unit, unit.now.timestamp())):
        unit.usage[record.leaf] = record
    unit.record(EventKind.POLICY_APPLIED, f"{command.by} applied revision {number} of the policy.")
    unit.replan = True
    return number


def in_force(source: str, revision: int) -> PolicyInForce:
    """Read a document and grow its tree.

    Raises:
        BadRequest: If it makes no sense.
    """
    policy = parse_policy(source)
    return PolicyInForce(policy=policy, tree=tree_of(policy), revision=revision, source=source)
