"""So many times within so many seconds."""

from jupyter_gpupool.agent.allowance import Allowance


def test_allowance_ends_and_comes_back():
    """Used up, it is refused until its window is over."""
    allowance = Allowance(most=2, within_s=10.0)
    assert [allowance.take(now_s) for now_s in (100.0, 101.0, 102.0, 110.0)] == [
        True,
        True,
        False,
        True,
    ]


def test_pause_lasts_to_the_windows_end():
    """Whoever waits that long is served."""
    allowance = Allowance(most=1, within_s=10.0)
    allowance.take(100.0)
    assert allowance.pause_s(104.0) == 6.0
    assert allowance.take(104.0 + allowance.pause_s(104.0))
