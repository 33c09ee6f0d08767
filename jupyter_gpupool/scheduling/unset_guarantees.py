"""What a queue is guaranteed of which the policy says nothing: as much as the queues below it.

Called where a policy's tree is grown. Else nothing below a queue could be guaranteed without the
admin adding up, and the guarantees of those below would not hold against the queues beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jupyter_gpupool.scheduling.amounts import NO_LIMIT, Amount
from jupyter_gpupool.scheduling.queues import QueueTree, link


def filled(tree: QueueTree, is_said: Mapping[str, Sequence[bool]]) -> QueueTree:
    """The tree with what each queue is guaranteed, said or not.

    The sum stays within the queue's own limit; `check_guarantees` refuses what does not fit.

    Args:
        tree: As the policy says, with 0 where it says nothing.
        is_said: By queue, and for each kind of the tree: whether the policy says how much.
    """
    has: dict[str, Amount] = {}
    for name in reversed(tree.top_down):
        queue, below = tree.queues[name], [has[child] for child in tree.children[name]]
        sums = tuple(map(sum, zip(*below, strict=True))) if below else queue.guarantee
        has[name] = tuple(
            own if said else min(total, most, NO_LIMIT)
            for own, said, total, most in zip(
                queue.guarantee, is_said[name], sums, queue.limit, strict=True
            )
        )
    return link(tree.kinds, (replace(q, guarantee=has[q.name]) for q in tree.queues.values()))
