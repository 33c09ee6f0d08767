"""A user keeps a claim: within the policy's bounds, and never twice for the same time."""

import pytest
from idle_world import Watching, a_rule

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.idle_rule import KeepAlive, Terms
from jupyter_gpupool.scheduling.idle_verdicts import Call
from jupyter_gpupool.scheduling.keep_alive import longest_ms

_HOUR_S = 3600.0
_BOUNDS = KeepAlive(longest_s=2 * _HOUR_S, per_day_s=3 * _HOUR_S)


@pytest.fixture
def claim():
    """One that has been seen for a while."""
    made = Watching(rules=(a_rule(keep_alive=_BOUNDS),))
    made.see_minutes(10)
    return made


def test_a_single_keep_is_bounded(claim):
    """Two hours and no second more."""
    with pytest.raises(BadRequest, match="kept for 2 h at a time"):
        claim.keep(2 * _HOUR_S + 1)
    claim.keep(2 * _HOUR_S)
    assert claim.watch.is_kept


def test_a_day_of_keeps_is_bounded(claim):
    """What is left is said."""
    claim.keep(2 * _HOUR_S)
    claim.see_minutes(120)
    with pytest.raises(BadRequest, match=r"Of the 3 h a day .* 1 h are left"):
        claim.keep(1.5 * _HOUR_S)
    claim.keep(_HOUR_S)
    assert claim.watch.is_kept


def test_what_was_kept_a_day_ago_counts_no_more(claim):
    """Any 24 hours, not those of a calendar that can be set."""
    claim.keep(2 * _HOUR_S)
    claim.see_minutes(24 * 60 + 60)
    claim.keep(2 * _HOUR_S)
    assert claim.watch.is_kept


def test_a_keep_that_replaces_another_counts_once(claim):
    """Asked for two hours and again at once, it is two hours of the day."""
    for _ in range(5):
        claim.keep(2 * _HOUR_S)
    claim.see_minutes(60)
    claim.keep(2 * _HOUR_S)
    assert [keep.for_ms for keep in claim.watch.keeps] == [3_600_000, 7_200_000]


def test_a_keep_can_be_taken_back(claim):
    """Then only what passed of it counts, and the claim is judged again."""
    claim.keep(2 * _HOUR_S)
    claim.see_minutes(30)
    claim.keep(0)
    assert [keep.for_ms for keep in claim.watch.keeps] == [1_800_000]
    assert claim.see_minutes(1)[0][1] is Call.WARN


def test_a_reason_is_asked_where_the_policy_asks(claim):
    """Blanks are none."""
    claim.rules = (a_rule(keep_alive=KeepAlive(reason=True)),)
    with pytest.raises(BadRequest, match="asks why"):
        claim.keep(60, reason="  ")
    claim.keep(60, reason="a demonstration at noon")
    assert claim.watch.is_kept


def test_a_keep_clears_the_warning_and_leaves_that_of_the_longest_time():
    """What nobody can postpone stays announced."""
    claim = Watching(rules=(a_rule(longest=Terms(warn_s=1200, after_s=7200)),))
    claim.see_minutes(16)
    claim.keep(60)
    assert claim.watch.warned is None
    claim.see_minutes(10, gpu_peak=900)
    claim.keep(60)
    assert claim.watch.warned is not None


def test_what_may_be_kept_now_is_known_beforehand(claim):
    """A keep of just that length is taken, whatever was kept before."""
    for expected_s in (2 * _HOUR_S, _HOUR_S, 0.0):
        assert longest_ms(claim.watch, _BOUNDS) == expected_s * 1000
        if expected_s:
            claim.keep(expected_s)
            claim.see_minutes(round(expected_s / 60))
