"""Which workers go: pure."""

import pytest

from jupyter_gpupool.protocol.launch import Orders
from jupyter_gpupool.runtime.retiring import Membership, names_to_retire


def _in_order(*names):
    """The scheduler would spare these, the first one first."""
    return lambda count: names[:count]


@pytest.mark.parametrize(
    ("orders", "membership", "spared", "expected"),
    [
        pytest.param(Orders(), Membership(("a", "b")), "ab", (), id="no orders, nobody goes"),
        pytest.param(
            Orders(retire=("b", "x")), Membership(("a", "b")), "ab", ("b",), id="the named goes"
        ),
        pytest.param(
            Orders(keep_workers=1), Membership(("a", "b", "c")), "cba", ("c", "b"), id="surplus"
        ),
        pytest.param(
            Orders(keep_workers=2),
            Membership(("a", "b", "c"), retiring=("c",)),
            "cab",
            (),
            id="one that is retiring already is no surplus",
        ),
        pytest.param(
            Orders(keep_workers=1),
            Membership(("a", "b", "c"), retiring=("c",)),
            "cab",
            ("a",),
            id="the scheduler's choice skips who is retiring",
        ),
        pytest.param(
            Orders(keep_workers=1),
            Membership(("a", "b", "c")),
            "",
            ("c", "b"),
            id="a scheduler that spares nobody is still obeyed",
        ),
        pytest.param(
            Orders(retire=("a",), keep_workers=2),
            Membership(("a", "b", "c")),
            "abc",
            ("a",),
            id="who was named counts towards the surplus",
        ),
        pytest.param(
            Orders(keep_workers=0), Membership(("a", "b")), "ab", ("a", "b"), id="all may go"
        ),
        pytest.param(
            Orders(keep_workers=5), Membership(("a", "b")), "ab", (), id="more than there are"
        ),
        pytest.param(
            Orders(), Membership(("a", "b"), retired=("a",)), "ab", ("a",), id="the retired return"
        ),
    ],
)
def test_names_to_retire(orders, membership, spared, expected):
    """Orders, members and the scheduler's preference decide, and nothing else."""
    assert names_to_retire(orders, membership, _in_order(*spared)) == expected


def test_same_orders_again_name_nobody_new():
    """Once the named are retiring, the same orders are fulfilled."""
    orders = Orders(retire=("a",), keep_workers=1)
    first = names_to_retire(orders, Membership(("a", "b", "c")), _in_order("a", "b", "c"))
    after = Membership(("a", "b", "c"), retiring=first)
    assert names_to_retire(orders, after, _in_order("a", "b", "c")) == ()
