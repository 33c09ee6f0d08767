"""The laws of division, for any siblings: capacity, priority, monotony, independence of order."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference_shares import reference_division

from jupyter_gpupool.scheduling.amounts import BASE_KINDS, NO_LIMIT, WHOLE_DEVICE, add, nothing
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.queues import Queue, QueueTree
from jupyter_gpupool.scheduling.shares import ALL_USAGE, Demand, divide
from jupyter_gpupool.scheduling.tree_shares import divide_again, divide_tree
from jupyter_gpupool.scheduling.usage import usage_by_queue

AMOUNTS = st.integers(0, 60).map(lambda quarters: quarters * 250)
CAPACITIES = st.integers(0, 200).map(lambda quarters: quarters * 250)
WEIGHTS = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 7.0, 100.0])


@st.composite
def siblings(draw):
    """A few siblings whose names say nothing about the rest."""
    size = draw(st.integers(1, 7))
    used = [draw(st.integers(0, 5)) for _ in range(size)]
    return [
        Demand(
            name=f"q{at}",
            guarantee=draw(AMOUNTS),
            request=draw(AMOUNTS),
            limit=draw(st.one_of(st.just(NO_LIMIT), AMOUNTS)),
            weight=draw(WEIGHTS),
            priority=draw(st.integers(0, 2)),
            usage=used[at] * ALL_USAGE // max(1, sum(used)),
            created=draw(st.integers(0, 2)),
        )
        for at in range(size)
    ]


def shares_of(amount: int, demands: list[Demand], k: float = 0.5) -> dict[str, int]:
    division = divide(amount, demands, unit=WHOLE_DEVICE, k=k)
    return dict(zip((d.name for d in demands), division.shares, strict=True))


@settings(max_examples=1000)
@given(CAPACITIES, siblings(), st.sampled_from([0.0, 0.25, 0.5, 1.0, 10.0]))
def test_division_equals_slow_exact_reference(amount, demands, k):
    """Fixed point, early exits and single passes change no share."""
    exact = reference_division(amount, demands, unit=WHOLE_DEVICE, k=Fraction(k))
    assert shares_of(amount, demands, k) == exact


@settings(max_examples=200)
@given(CAPACITIES, siblings())
def test_shares_stay_within_capacity(amount, demands):
    """Only guarantees may promise more than there is, and what is left over is told."""
    division = divide(amount, demands, unit=WHOLE_DEVICE)
    promised = sum(min(d.guarantee, d.request, d.limit) for d in demands)
    assert sum(division.shares) <= max(amount, promised)
    assert division.left_over == max(0, amount - sum(division.shares))


@settings(max_examples=200)
@given(CAPACITIES, siblings())
def test_nobody_gets_more_than_wanted(amount, demands):
    """A share is at least the wanted guarantee, and at most request and limit."""
    for demand, share in zip(demands, divide(amount, demands).shares, strict=True):
        wanted = min(demand.request, demand.limit)
        assert min(demand.guarantee, wanted) <= share <= wanted


@settings(max_examples=200)
@given(CAPACITIES, siblings())
def test_nothing_lies_idle_while_wanted(amount, demands):
    """If anything is left, everybody with a weight has all that is wanted."""
    division = divide(amount, demands, unit=WHOLE_DEVICE)
    assume(division.left_over)
    for demand, share in zip(demands, division.shares, strict=True):
        assert not demand.weight or share == min(demand.request, demand.limit)


@settings(max_examples=200)
@given(CAPACITIES, siblings())
def test_higher_priority_is_served_first(amount, demands):
    """Whoever got surplus stands above nobody who wants more of it."""
    shares = shares_of(amount, demands)
    got = [d.priority for d in demands if shares[d.name] > min(d.guarantee, d.request, d.limit)]
    lacks = [d.priority for d in demands if d.weight and shares[d.name] < min(d.request, d.limit)]
    assert not got or not lacks or min(got) >= max(lacks)


@settings(max_examples=200)
@given(CAPACITIES, siblings(), st.randoms(use_true_random=False))
def test_order_of_siblings_decides_nothing(amount, demands, random):
    """The same demands in any order give everybody the same."""
    shuffled = random.sample(demands, len(demands))
    assert shares_of(amount, shuffled) == shares_of(amount, demands)


@settings(max_examples=200)
@given(CAPACITIES, siblings(), st.integers(1, 20))
def test_more_capacity_takes_at_most_one_device(amount, demands, more):
    """Largest remainders may move one last device, never two."""
    before, after = shares_of(amount, demands), shares_of(amount + 250 * more, demands)
    assert all(after[name] >= share - WHOLE_DEVICE for name, share in before.items())


@settings(max_examples=200)
@given(CAPACITIES, siblings(), st.data())
def test_more_weight_takes_at_most_one_device(amount, demands, data):
    """Whoever's weight grows keeps the share, but for the last device."""
    at = data.draw(st.integers(0, len(demands) - 1))
    heavier = demands[at]._replace(weight=demands[at].weight + data.draw(WEIGHTS))
    after = shares_of(amount, [*demands[:at], heavier, *demands[at + 1 :]])
    assert after[heavier.name] >= shares_of(amount, demands)[heavier.name] - WHOLE_DEVICE


@settings(max_examples=200)
@given(CAPACITIES, siblings(), st.integers(1, 30))
def test_wanting_more_takes_at_most_one_device(amount, demands, more):
    """Nobody gains a device by asking for less, but for the last one."""
    greedy = demands[0]._replace(request=demands[0].request + 250 * more)
    after = shares_of(amount, [greedy, *demands[1:]])
    assert after[greedy.name] >= shares_of(amount, demands)[greedy.name] - WHOLE_DEVICE


@settings(max_examples=200)
@given(CAPACITIES, siblings(), st.data())
def test_past_use_never_raises_a_share(amount, demands, data):
    """Of two equals, the one that used less gets at least as much."""
    first = demands[0]
    used = data.draw(st.integers(0, ALL_USAGE - first.usage))
    twin = first._replace(name="twin", usage=first.usage + used)
    shares = shares_of(amount, [first, twin, *demands[1:]])
    assert shares[first.name] >= shares["twin"]


def test_surplus_follows_weight():
    """Ten devices above guarantees, weights 1 and 4: two and eight."""
    demands = [
        Demand("a", 1000, 99_000, weight=1.0),
        Demand("b", 1000, 99_000, weight=4.0),
    ]
    assert shares_of(12_000, demands) == {"a": 3000, "b": 9000}


def test_last_device_goes_to_largest_remainder():
    """Of 1.4 and 5.6 devices the second is rounded up."""
    demands = [Demand("a", 0, 99_000, weight=1.0), Demand("b", 0, 99_000, weight=4.0)]
    assert shares_of(7_000, demands) == {"a": 1000, "b": 6000}


def test_equal_remainders_go_to_older_queue():
    """Creation decides, then the name."""
    demands = [Demand("a", 0, 9_000, created=2), Demand("b", 0, 9_000, created=1)]
    assert shares_of(3_000, demands) == {"a": 1000, "b": 2000}


def test_usage_corrects_equal_weights():
    """All use was a's: P is 1/4 for a and 3/4 for b, whose w' are 1/2 each."""
    demands = [Demand("a", 0, 99_000, usage=ALL_USAGE), Demand("b", 0, 99_000)]
    assert shares_of(8_000, demands, k=0.5) == {"a": 2000, "b": 6000}
    assert shares_of(8_000, demands, k=0.0) == {"a": 4000, "b": 4000}


def test_fraction_wanted_is_fraction_given():
    """Who wants half a device is not given a whole one, and the other half is not lost."""
    demands = [Demand("a", 0, 500), Demand("b", 0, 9_000)]
    assert shares_of(3_000, demands) == {"a": 500, "b": 2500}


@st.composite
def trees(draw):
    """Two or three levels with guarantees, weights and limits of any kind."""
    names: list[str] = []
    queues = []
    for at in range(draw(st.integers(1, 12))):
        above = draw(st.one_of(st.none(), st.sampled_from(names))) if names else None
        guarantee = (draw(AMOUNTS), draw(AMOUNTS), 0)
        names.append(f"q{at:02}")
        queues.append(
            Queue(
                name=names[-1],
                parent=above,
                guarantee=guarantee,
                weight=draw(WEIGHTS),
                limit=draw(st.sampled_from([(NO_LIMIT,) * 3, add(guarantee, (2000, 2000, 2000))])),
                priority=draw(st.integers(0, 1)),
            )
        )
    return grow(BASE_KINDS, queues)


def drawn_requests(data, tree: QueueTree):
    return {leaf: (data.draw(AMOUNTS), data.draw(AMOUNTS), 7) for leaf in tree.leaves}


@settings(max_examples=100)
@given(trees(), CAPACITIES, st.data())
def test_children_share_what_parent_has(tree, amount, data):
    """No level hands out more than it was given, unless its guarantees alone are more."""
    shares = divide_tree(tree, (amount,) * 3, drawn_requests(data, tree)).shares
    for parent, below in tree.children.items():
        has = (amount,) * 3 if parent is None else shares[parent]
        for at, available in enumerate(has):
            owed = sum(min(tree.queues[c].guarantee[at], shares[c][at]) for c in below)
            assert sum(shares[c][at] for c in below) <= max(available, owed)


@settings(max_examples=100)
@given(trees(), CAPACITIES, st.data())
def test_dividing_again_equals_dividing_anew(tree, amount, data):
    """A few changed requests cost little and give what the whole division gives."""
    requests, capacity = drawn_requests(data, tree), (amount, 2 * amount, 10)
    usage = usage_by_queue(tree, {leaf: data.draw(st.integers(0, 9)) for leaf in tree.leaves})
    before = divide_tree(tree, capacity, requests, usage)
    leaves = data.draw(st.lists(st.sampled_from(tree.leaves), max_size=3))
    changed = {leaf: (data.draw(AMOUNTS), data.draw(AMOUNTS), 3) for leaf in leaves}
    again = divide_again(before, changed)
    assert again == divide_tree(tree, capacity, requests | changed, usage)


def test_parent_asks_only_for_usable():
    """What a child without weight wants beyond its guarantee is left to the others."""
    idle = Queue(name="idle", parent="dept", guarantee=(1000,), weight=0.0, limit=(NO_LIMIT,))
    dept = replace(idle, name="dept", parent=None, weight=1.0)
    other = replace(idle, name="other", parent=None, guarantee=(0,), weight=1.0)
    tree = grow(("devices",), [idle, dept, other])
    shares = divide_tree(tree, (8000,), {"idle": (9000,), "other": (9000,)}).shares
    assert shares == {"dept": (1000,), "other": (7000,), "idle": (1000,)}


@pytest.mark.parametrize("wanted", [{}, {"a": (0, 0, 0)}])
def test_no_request_gets_no_share(wanted):
    """A queue that wants nothing holds nothing back."""
    tree = grow(BASE_KINDS, [Queue(name="a", guarantee=(9, 9, 9), limit=(9, 9, 9))])
    assert divide_tree(tree, (9, 9, 9), wanted).shares == {"a": nothing(BASE_KINDS)}
