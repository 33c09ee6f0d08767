"""The policy in force, with what is made of it once: its tree.

Part of the books; replaced as a whole when an admin applies another one.
"""

from dataclasses import dataclass, field

from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.pool.policy import Policy
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, user_leaf

from .policy_tree import tree_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The newest revision, which was applied by an earlier version and is no policy to this one."""

    revision: int
    source: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    """A policy that makes a tree.

    Attributes:
        revision: As which it was applied; 0 is the default, which nobody applied.
        source: The document, word for word.
        refused: What should be in force in its place; None if nothing should.
    """

    policy: Policy = field(default_factory=Policy)
    tree: QueueTree = field(default_factory=lambda: tree_of(Policy()))
    revision: int = 0
    source: str = ""
    refused: Refused | None = None

    @property
    def next_revision(self) -> int:
        """The number of the next one that is applied: none is ever given twice."""
        newest = self.revision if self.refused is None else self.refused.revision
        return newest + 1

    def queue_of(self, claim: Claim) -> Queue | None:
        """Where a claim stands: where it was made, else where its owner's claims go now.

        Returns:
            None if its queue is gone and its owner belongs to no other.
        """
        name = claim.request.queue
        if name not in self.tree.queues:
            name = next(iter(self.policy.queues_of(claim.owner)), "")
        return self.tree.queues.get(name)

    def leaf_of(self, claim: Claim) -> str:
        """The leaf of a claim's owner in its queue."""
        queue = self.queue_of(claim)
        return user_leaf("" if queue is None else queue.name, claim.owner)

    def rank_of(self, claim: Claim) -> tuple[int, bool]:
        """How urgent a claim is, under its queue's ceiling, and whether it is firm."""
        try:
            found = self.policy.priority_class(claim.request.priority)
        except PoolError:
            # An earlier policy had it; whoever claimed with it loses nothing but its rank.
            return min(each.rank for each in self.policy.priorities), False
        queue = self.queue_of(claim)
        ceiling = None if queue is None else queue.max_priority
        return found.rank if ceiling is None else min(found.rank, ceiling), found.firm
