"""Dominant shares above the guarantee, and when taking makes a level fairer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.scheduling.amounts import BASE_KINDS, NO_LIMIT, devices_of
from jupyter_gpupool.scheduling.dominance import (
    NOTHING_BORROWED,
    DominantShare,
    dominant_share,
    is_fairer,
    lendable_below,
    level_shares,
    resources,
)
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.queues import Queue

OF = resources(BASE_KINDS)
CAPACITY = (10_000, 100_000, 1_000)

SHARES = st.builds(DominantShare, weightless=st.booleans(), ratio=st.floats(0, 9))


def share_of(held, *, guarantee=(2_000, 2_000, 0), weight=1.0) -> DominantShare:
    return dominant_share(held=held, guarantee=guarantee, lendable=CAPACITY, weight=weight, of=OF)


def test_guarantee_counts_as_own():
    """Whoever holds no more than promised borrows nothing."""
    assert share_of((2_000, 2_000, 0)) == NOTHING_BORROWED


@pytest.mark.parametrize(
    ("held", "ratio", "kind"),
    [
        ((3_000, 12_000, 0), 0.1, "cpu"),
        ((3_000, 3_000, 0), 0.1, "devices"),
        ((0, 0, 500), 0.5, "memory"),
    ],
)
def test_greatest_part_dominates(held, ratio, kind):
    """Of several resources the one of which most is borrowed counts; the name breaks a tie."""
    assert share_of(held) == DominantShare(ratio=ratio, kind=kind, borrows=True)


def test_weight_divides_the_share():
    """Twice the weight may borrow twice as much."""
    assert share_of((4_000, 0, 0), weight=2.0).ratio == 0.1


def test_weightless_borrower_exceeds_all():
    """Weight 0 is beyond any weight, and among its like the ratio decides."""
    little, much = share_of((2_001, 0, 0), weight=0.0), share_of((9_000, 0, 0), weight=0.0)
    assert share_of((9_000, 0, 0)) < little < much
    assert share_of((2_000, 0, 0), weight=0.0) == NOTHING_BORROWED


def test_unlendable_resource_dominates_nothing():
    """It is borrowed, but of something the parent has nothing of there is no part."""
    share = dominant_share(
        held=(5, 0, 0), guarantee=(0, 0, 0), lendable=(0, 9, 9), weight=1.0, of=OF
    )
    assert share == DominantShare(borrows=True)


def test_models_count_together():
    """Borrowed of one model, unused of another: parts of all devices of named models."""
    kinds = (*BASE_KINDS, devices_of("A100"), devices_of("L40S"))
    share = dominant_share(
        held=(9, 0, 0, 6, 3),
        guarantee=(9, 0, 0, 4, 5),
        lendable=(20, 0, 0, 10, 10),
        weight=1.0,
        of=resources(kinds),
    )
    assert share == DominantShare(ratio=0.1, kind="devices:*", borrows=True)


def test_parents_limit_bounds_what_is_lent():
    """Below a limited department only its limit can be borrowed, at the top all there is."""
    dept = Queue(name="dept", guarantee=(0, 0, 0), limit=(4_000, NO_LIMIT, NO_LIMIT))
    team = Queue(name="team", parent="dept", guarantee=(0, 0, 0), limit=(NO_LIMIT,) * 3)
    tree = grow(BASE_KINDS, [dept, team])
    assert lendable_below(tree, CAPACITY, "dept") == (4_000, 100_000, 1_000)
    held = {"dept": (2_000, 0, 0), "team": (2_000, 0, 0)}
    assert level_shares(tree, CAPACITY, held, None)[0].ratio == 0.2
    assert level_shares(tree, CAPACITY, held, "dept", ["team"])[0].ratio == 0.5


def test_fairer_lowers_greatest_share_first():
    """The greatest share decides, however much the small ones grow."""
    high, mid, low = (DominantShare(ratio=ratio) for ratio in (0.9, 0.5, 0.1))
    assert is_fairer([mid, mid], [low, high])
    assert not is_fairer([low, high], [mid, mid])
    assert not is_fairer([low, high], [high, low])


@given(st.lists(SHARES, max_size=5), st.data())
def test_unchanged_shares_may_be_left_out(before, data):
    """Whoever neither gains nor loses changes no comparison."""
    after = data.draw(st.lists(SHARES, min_size=len(before), max_size=len(before)))
    others = data.draw(st.lists(SHARES, max_size=5))
    assert is_fairer(after + others, before + others) == is_fairer(after, before)


@given(st.lists(SHARES, min_size=2, max_size=5))
def test_fairness_never_goes_in_circles(shares):
    """A strict order: of two different states one at most is fairer."""
    half = len(shares) // 2
    one, other = shares[:half], shares[half : 2 * half]
    assert not (is_fairer(one, other) and is_fairer(other, one))
    assert not is_fairer(one, list(reversed(one)))
