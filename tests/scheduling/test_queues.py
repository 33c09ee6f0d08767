"""The tree of queues: who stands where, and what is refused with which sentence."""

from dataclasses import replace

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.scheduling.amounts import BASE_KINDS, DEVICES, NO_LIMIT, devices_of
from jupyter_gpupool.scheduling.queue_checks import check_guarantees, grow
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, UserLimits, with_users


def a_queue(name: str, parent: str | None = None, *, devices: int = 0, limit: int = NO_LIMIT):
    return Queue(name=name, parent=parent, guarantee=(1000 * devices,), limit=(limit,))


def a_tree(*queues: Queue) -> QueueTree:
    return grow((DEVICES,), queues)


@pytest.fixture
def company() -> QueueTree:
    """Two departments; research has two teams, one of them a group."""
    parents = {
        "vision": "research",
        "research": None,
        "speech": "research",
        "sales": None,
        "asr": "speech",
    }
    return a_tree(*(a_queue(name, parent) for name, parent in parents.items()))


def test_children_stand_in_name_order(company):
    """Whatever the order of the policy, the tree's is that of the names."""
    assert company.children[None] == ("research", "sales")
    assert company.children["research"] == ("speech", "vision")
    assert company.leaves == ("asr", "sales", "vision")


def test_parents_come_before_their_children(company):
    """Whoever walks `top_down` has seen the parent of each queue before it."""
    place = {name: at for at, name in enumerate(company.top_down)}
    below = [queue for queue in company.queues.values() if queue.parent is not None]
    assert len(place) == 5
    assert all(place[queue.parent] < place[queue.name] for queue in below)


def test_path_leads_from_leaf_to_top(company):
    """The queue itself is its first step."""
    assert company.path("asr") == ("asr", "speech", "research")


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("asr", "vision", "research"),
        ("asr", "speech", "speech"),
        ("asr", "asr", "asr"),
        ("asr", "sales", None),
    ],
)
def test_common_ancestor_is_lowest(company, one, other, meet):
    """Two queues meet at the lowest one that holds both, and only the pool is None."""
    assert company.common_ancestor(one, other) == meet
    assert company.common_ancestor(other, one) == meet


def test_child_on_ones_side_is_found(company):
    """`below` is the step from an ancestor down to a queue."""
    assert company.below("research", "asr") == "speech"
    assert company.below("speech", "asr") == "asr"
    assert company.below(None, "asr") == "research"


def test_each_user_becomes_a_leaf(company):
    """A user's leaf has weight 1, no guarantee, and the limit that its queue sets for users."""
    limited = replace(company.queues["vision"], user_limits=UserLimits(devices=2000))
    tree = a_tree(*{**company.queues, "vision": limited}.values())
    grown = with_users(tree, [("vision", "eve"), ("vision", "ada"), ("vision", "eve")])
    assert grown.children["vision"] == ("vision/ada", "vision/eve")
    leaf = grown.queues["vision/ada"]
    assert (leaf.guarantee, leaf.limit, leaf.weight, leaf.user) == ((0,), (2000,), 1.0, "ada")


def test_users_added_again_change_nothing(company):
    """A second extension by the same user is the same tree."""
    once = with_users(company, [("vision", "ada")])
    assert with_users(once, [("vision", "ada")]) == once


@pytest.mark.parametrize(
    ("queues", "sentence"),
    [
        ([a_queue("a", "b")], 'The parent "b" of queue "a" is unknown.'),
        ([a_queue("a"), a_queue("a")], 'There are two queues named "a".'),
        ([a_queue("a", "b"), a_queue("b", "a")], 'Queues stand in a circle: "a" in "b" in "a".'),
        ([a_queue("a", "a")], 'Queues stand in a circle: "a" in "a".'),
        ([a_queue("")], "A queue has no name."),
        (
            [a_queue("a/b")],
            'The name of queue "a/b" has a slash, which stands between a queue and its user.',
        ),
        (
            [a_queue("a", devices=3, limit=1500)],
            'Queue "a" has a guarantee of 3 devices above its limit of 1.5 devices.',
        ),
        ([a_queue("a", devices=-1)], 'Queue "a" has a negative guarantee of -1 devices.'),
        ([a_queue("a", limit=-1)], 'Queue "a" has a negative limit of -0.001 devices.'),
        (
            [replace(a_queue("a"), weight=-2)],
            'Queue "a" has a weight of -2; it must be from 0 to 1000000.',
        ),
        (
            [replace(a_queue("a"), weight=float("nan"))],
            'Queue "a" has a weight of nan; it must be from 0 to 1000000.',
        ),
        (
            [replace(a_queue("a"), weight=1e308)],
            'Queue "a" has a weight of 1e+308; it must be from 0 to 1000000.',
        ),
        (
            [a_queue("0"), *(a_queue(f"{n}", f"{n - 1}") for n in range(1, 1500))],
            'Queue "64" stands more than 64 levels deep, which is the most there may be.',
        ),
        (
            [replace(a_queue("a"), limit=(1, 1))],
            'Queue "a" has a limit of 2 numbers for 1 resources.',
        ),
        (
            [replace(a_queue("a"), reclaim_min_runtime_s=-5.0)],
            'Queue "a" has a minimum runtime of -5 s; it must be 0 or more.',
        ),
        (
            [replace(a_queue("a"), user_limits=UserLimits(claims=-1))],
            'Queue "a" has a limit of -1 claims per user; it must be 0 or more.',
        ),
    ],
)
def test_nonsense_is_refused_in_one_sentence(queues, sentence):
    """Each refusal names the queue and the numbers."""
    with pytest.raises(BadRequest) as refused:
        a_tree(*queues)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("queue", "key"),
    [
        (a_queue("a", "b"), "queues.a.parent"),
        (a_queue("a/b"), "queues.a/b"),
        (a_queue("a", devices=3, limit=1500), "queues.a.guarantee"),
        (a_queue("a", limit=-1), "queues.a.limit"),
        (replace(a_queue("a"), weight=-2), "queues.a.weight"),
        (replace(a_queue("a"), own_min_runtime_s=-5.0), "queues.a.own_min_runtime"),
        (replace(a_queue("a"), user_limits=UserLimits(devices=-1)), "queues.a.per_user.gpus"),
    ],
)
def test_refusal_names_the_key_of_the_document(queue, key):
    """Where an admin finds what they have to change."""
    with pytest.raises(BadRequest) as refused:
        a_tree(queue)
    assert refused.value.field == key


def test_guarantees_beyond_capacity_are_refused():
    """The sentence has both numbers."""
    tree = a_tree(a_queue("a", devices=5), a_queue("b", devices=4))
    check_guarantees(tree, (9000,))
    with pytest.raises(BadRequest) as refused:
        check_guarantees(tree, (8000,))
    sums = 'The guarantees of "a", "b" add up to 9 devices, but the pool has 8 devices.'
    assert str(refused.value) == sums


@pytest.mark.parametrize("capacity", [(8000,), None])
def test_guarantees_beyond_parents_are_refused(capacity):
    """Children cannot be promised more than their parent is, whatever hosts have joined."""
    tree = a_tree(a_queue("a", devices=2), a_queue("b", "a", devices=3))
    with pytest.raises(BadRequest, match='"b" add up to 3 devices, but the guarantee of "a" is 2'):
        check_guarantees(tree, capacity)


def test_unlimited_guarantee_is_all_there_is():
    """Alone it is fine; beside any other guarantee it is too much."""
    everything = replace(a_queue("a"), guarantee=(NO_LIMIT,))
    check_guarantees(a_tree(everything, a_queue("b")), (8000,))
    check_guarantees(a_tree(everything, a_queue("b", devices=1)), None)
    with pytest.raises(BadRequest, match="add up to 9 devices"):
        check_guarantees(a_tree(everything, a_queue("b", devices=1)), (8000,))


def test_each_resource_is_checked():
    """CPU, memory and single models count in their own units."""
    kinds = (*BASE_KINDS, devices_of("A100"))
    amounts = {"cpu": (0, 1500, 0, 0), "mem": (0, 0, 2**31, 0), "model": (0, 0, 0, 3000)}
    for amount, said in zip(
        amounts.values(), ("1.5 cores", "2 GiB", "3 devices A100"), strict=True
    ):
        tree = grow(kinds, [Queue(name="a", guarantee=amount, limit=(NO_LIMIT,) * 4)])
        with pytest.raises(BadRequest, match=f'"a" add up to {said}, but the pool has 0'):
            check_guarantees(tree, (0, 0, 0, 0))
