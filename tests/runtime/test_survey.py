"""What is said to be too large: pure."""

from jupyter_gpupool.runtime.survey import beyond


def test_nothing_is_too_large_without_a_quota():
    """None is without bound."""
    assert beyond({"a": 2**60}, None) == ()


def test_all_that_fits_together_is_kept():
    """To the last byte."""
    assert beyond({"a": 5, "b": 5}, 10) == ()


def test_largest_results_are_named_first():
    """So that as few as possible are."""
    assert beyond({"small": 1, "large": 9, "middle": 5}, 6) == ("large",)
