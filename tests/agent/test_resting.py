"""How long the agent leaves between two pieces of the same work: pure."""

import pytest

from jupyter_gpupool.agent.resting import rest_after


@pytest.mark.parametrize(
    ("took_s", "rest_s"),
    [(0.0, 0.0), (0.002, 0.0), (0.005, 0.02), (0.2, 0.8), (3.0, 1.0), (3600.0, 1.0)],
)
def test_long_work_is_followed_by_rest_within_bounds(took_s, rest_s):
    """A small host never waits; one that was stopped is not silent for long."""
    assert rest_after(took_s) == pytest.approx(rest_s)
