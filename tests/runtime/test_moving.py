"""How results are shared out among messages and workers: pure."""

from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.runtime.moving import Move, batches, spread

_MOVES = st.lists(
    st.builds(
        lambda nbytes, source, target: (nbytes, source, target),
        st.integers(0, 300),
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
    ),
    max_size=60,
)


def _moves(drawn):
    return [
        Move(key=number, nbytes=nbytes, source=source, target=target)
        for number, (nbytes, source, target) in enumerate(drawn)
    ]


@given(_MOVES)
def test_every_result_goes_exactly_once(drawn):
    """In a message between the very workers that its move names."""
    moves = _moves(drawn)
    sent = [
        (key, batch.source, batch.target) for batch in batches(moves, 100) for key in batch.keys
    ]
    assert sorted(sent) == [(move.key, move.source, move.target) for move in moves]


@given(_MOVES)
def test_only_a_result_alone_exceeds_the_size_of_a_message(drawn):
    """What is larger than a message has one of its own."""
    moves = _moves(drawn)
    for batch in batches(moves, 100):
        total = sum(moves[key].nbytes for key in batch.keys)
        assert total <= 100 or len(batch.keys) == 1


def test_message_has_a_most_of_keys():
    """Results without bytes would otherwise all share one."""
    moves = _moves([(0, "a", "x")] * 2500)
    assert [len(batch.keys) for batch in batches(moves)] == [1000, 1000, 500]


def test_results_go_to_who_has_least():
    """A worker that has something already gets less."""
    moves = spread({1: 10, 2: 10, 3: 10}, "holder", [("full", 15), ("empty", 0)])
    assert [(move.key, move.target) for move in moves] == [(1, "empty"), (2, "empty"), (3, "full")]
