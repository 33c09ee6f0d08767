"""Whether taking makes the tree fairer where the sides of giver and claimant meet.

Asked by `reclaiming` of the final set. Shares are whole devices, so that one of two equals has the
odd one; they heed past use, which grows while a claim runs. Neither is a reason to stop anybody:
what one side holds beyond its guarantee, per weight, has to become less than the greatest was.
Source: design section 5.4; see `dominance`.
"""

from collections.abc import Mapping, Sequence

from .dominance import DominantShare, dominant_share, is_fairer, lendable_below, resources
from .ledger import Ledger


def makes_fairer(
    ledger: Ledger,
    parent: int,
    before: Mapping[int, Sequence[int]],
    after: Mapping[int, Sequence[int]],
) -> bool:
    """Whether the greatest dominant share below a queue becomes less, or the next if it stays.

    Args:
        ledger: The books.
        parent: The queue in which they meet, -1 above all.
        before: What its children held, those that gain or lose alone.
        after: What they will hold.
    """
    tree, name = ledger.tree, ledger.names[parent] if parent >= 0 else None
    lendable, of = lendable_below(tree, ledger.total, name), resources(ledger.kinds)

    def share(queue: int, held: Sequence[int]) -> DominantShare:
        return dominant_share(
            held=tuple(held),
            guarantee=ledger.guarantee[queue],
            lendable=lendable,
            weight=ledger.queues[queue].weight,
            of=of,
        )

    return is_fairer(
        [share(queue, held) for queue, held in after.items()],
        [share(queue, held) for queue, held in before.items()],
    )
