"""What a claim's processes say of themselves is told a few times at once, and then seldom."""

import pytest

from jupyter_gpupool.manager.service.telling import (
    MOST_TOLD,
    WINDOW_S,
    is_own_word,
    with_one_more,
)
from jupyter_gpupool.pool.claim_events import (
    ProblemsChanged,
    ResultsBack,
    ResultsLost,
    SchedulerUp,
)

WORDS = (
    ProblemsChanged(reason="It stands still.", problems=()),
    ResultsLost(reason="Lost.", again=1, gone=2),
    SchedulerUp(reason="It listens.", address="tls://a:1", dashboard_port=None),
)


@pytest.mark.parametrize("word", WORDS)
def test_own_word_is_one_that_comes_alone(word) -> None:
    """What comes with anything else is told with it."""
    assert is_own_word([word])
    assert not is_own_word([word, ResultsBack(reason="All are back.")])
    assert not is_own_word([ResultsBack(reason="All are back.")])
    assert not is_own_word([])


def test_some_are_told_at_once_and_the_next_when_the_first_is_old() -> None:
    """By the clock that is passed in."""
    told_s: tuple[float, ...] = ()
    for _ in range(MOST_TOLD):
        more = with_one_more(told_s, 100.0)
        assert more is not None
        told_s = more
    assert with_one_more(told_s, 99.0 + WINDOW_S) is None
    assert with_one_more(told_s, 100.0 + WINDOW_S) == (100.0 + WINDOW_S,)


def test_never_more_are_told_in_any_window() -> None:
    """However often it speaks."""
    told_s: tuple[float, ...] = ()
    at_s = [now_s / 2 for now_s in range(1_000)]
    moments = []
    for now_s in at_s:
        more = with_one_more(told_s, now_s)
        if more is not None:
            told_s = more
            moments.append(now_s)
    assert all(b - a >= WINDOW_S for a, b in zip(moments, moments[MOST_TOLD:], strict=False))
