"""What a queue is guaranteed of which nothing is said: the sum of those below it."""

import pytest

from jupyter_gpupool.manager.service.policy_tree import check_against, tree_of
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.policy import Policy, QueueTerms, Resources


def a_queue(name: str, parent: str | None = None, gpus: int | None = None, **more: Resources):
    """A queue that somebody may claim in."""
    said = Resources(devices=None if gpus is None else gpus * 1000)
    return QueueTerms(name=name, parent=parent, **{"guarantee": said, **more}, users=("ann",))


def guaranteed(*queues: QueueTerms) -> dict[str, int]:
    """Whole devices that each queue is guaranteed."""
    tree = tree_of(Policy(queues=queues))
    return {name: queue.guarantee[0] // 1000 for name, queue in tree.queues.items()}


def test_unset_guarantee_is_the_sum_of_those_below():
    """Through every level; one that is said stays as it is said."""
    tree = guaranteed(
        a_queue("all"),
        a_queue("research", "all"),
        a_queue("vision", "research", gpus=3),
        a_queue("speech", "research", gpus=2),
        a_queue("sales", "all", gpus=4),
        a_queue("east", "sales", gpus=1),
    )
    assert (tree["research"], tree["all"], tree["sales"]) == (5, 9, 4)


def test_nothing_said_anywhere_guarantees_nothing():
    """As before."""
    assert guaranteed(a_queue("a"), a_queue("b", "a")) == {"a": 0, "b": 0}


def test_each_resource_is_unset_for_itself():
    """A parent that speaks of devices need not speak of cores and models."""
    own = Resources(devices=2000, cpu=8000, models=(("a100", 1000),))
    tree = tree_of(Policy(queues=(a_queue("a", gpus=3), a_queue("b", "a", guarantee=own))))
    assert tree.queues["a"].guarantee == (3000, 8000, 0, 1000)
    check_against(tree, [])


def test_guarantees_below_are_refused_beyond_a_said_one_or_the_limit():
    """In words that name which of the two it is."""
    below = (a_queue("b", "a", gpus=3), a_queue("c", "a", gpus=2))
    said = tree_of(Policy(queues=(a_queue("a", gpus=4), *below)))
    with pytest.raises(BadRequest, match='add up to 5 devices, but the guarantee of "a" is 4'):
        check_against(said, [])
    cut = a_queue("a", limit=Resources(devices=4000))
    with pytest.raises(BadRequest, match='add up to 5 devices, but the limit of "a" is 4'):
        check_against(tree_of(Policy(queues=(cut, *below))), [])
