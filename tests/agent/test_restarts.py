"""Which ends of a worker are forgiven."""

from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.agent.restarts import (
    MOST_CLEAN_ENDS,
    MOST_CRASHES,
    NO_HISTORY,
    WINDOW_S,
    History,
    after_end,
)


def ends(*at_s: float, clean: bool = False) -> list[bool]:
    """For each end, whether the worker was forked again after it."""
    history, answers = NO_HISTORY, []
    for now_s in at_s:
        verdict = after_end(history, clean=clean, now_s=now_s)
        history = verdict.history
        answers.append(verdict.again)
    return answers


def test_three_crashes_in_five_minutes_are_forgiven() -> None:
    """The fourth one is not."""
    assert ends(0, 10, 20, 30) == [True, True, True, False]


def test_old_crashes_are_forgotten() -> None:
    """A crash every two minutes goes on for ever."""
    assert all(ends(*range(0, 3600, 120)))


def test_reason_names_number_and_time() -> None:
    """What a user reads when a worker is given up."""
    verdict = after_end(History(crashes_s=(1, 2, 3)), clean=False, now_s=4)
    assert verdict.reason == "it ended 4 times within 5 min"


def test_clean_end_is_no_crash() -> None:
    """client.restart() may be called many times."""
    assert all(ends(*range(MOST_CLEAN_ENDS), clean=True))


def test_clean_ends_are_bounded_too() -> None:
    """A worker that always ends at once is not forked for ever."""
    assert not ends(*range(MOST_CLEAN_ENDS + 1), clean=True)[-1]


def test_clean_ends_do_not_use_up_crashes() -> None:
    """Both are counted apart."""
    history = after_end(History(crashes_s=(1, 2)), clean=True, now_s=3).history
    assert after_end(history, clean=False, now_s=4).again


@given(st.lists(st.floats(0, 10_000), max_size=40).map(sorted))
def test_never_more_than_the_bound_within_the_window(at_s: list[float]) -> None:
    """Whatever the rhythm, forked again at most so often in any five minutes."""
    again_at_s = [t for t, again in zip(at_s, ends(*at_s), strict=True) if again]
    for start_s in again_at_s:
        within = [t for t in again_at_s if start_s <= t < start_s + WINDOW_S]
        assert len(within) <= MOST_CRASHES


@given(st.integers(0, 5))
def test_restarts_count_what_was_forked_again(crashes: int) -> None:
    """A refused one is not counted."""
    history = NO_HISTORY
    for now_s in range(crashes):
        history = after_end(history, clean=False, now_s=now_s).history
    assert history.restarts == min(crashes, MOST_CRASHES)
