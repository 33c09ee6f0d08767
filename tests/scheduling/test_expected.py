"""What is expected of a claim: its user's word, else its like, and never the future."""

import pytest
from gap_world import a_claim, a_host, a_view
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.scheduling.expected import (
    ENOUGH,
    RECENT,
    Experience,
    PastClaim,
    Source,
    with_expected,
)
from jupyter_gpupool.scheduling.shape import ONE_DEVICE


def past(took_s: float, ended_s: float, *, owner="ann", queue="q", workers=1) -> PastClaim:
    return PastClaim(UserName(owner), queue, ONE_DEVICE, workers, took_s, ended_s)


def taught(*claims: PastClaim) -> Experience:
    experience = Experience()
    for claim in sorted(claims, key=lambda claim: claim.ended_s):
        experience.learn(claim)
    return experience


def test_users_word_counts_first():
    """However many past claims say otherwise."""
    experience = taught(*(past(100.0, n) for n in range(20)))
    expected = experience.expect(a_claim("c", expected_s=7.0), 100.0)
    assert (expected.median_s, expected.source, str(expected)) == (
        7.0,
        Source.SAID,
        "said by its user",
    )


def test_quantiles_of_ones_own_past_claims():
    """Of 10, 20, … 100 seconds half take 50 at most, and nine of ten 90."""
    experience = taught(*(past(10.0 * n, n) for n in range(1, 11)))
    expected = experience.expect(a_claim("c"), 100.0)
    assert (expected.median_s, expected.at_most_s) == (50.0, 90.0)
    assert str(expected) == "learned from 10 past claims of the same user, queue and shape"


@pytest.mark.parametrize(
    ("others", "source"),
    [
        ({"owner": "bob"}, Source.SHAPE),
        ({"owner": "bob", "workers": 8}, Source.QUEUE),
        ({"queue": "other"}, Source.ALL),
    ],
)
def test_too_few_of_ones_own_back_off(others, source):
    """Four of one's own teach nothing; with others' it is told whose they were."""
    own = [past(1.0, n) for n in range(ENOUGH - 1)]
    experience = taught(*own, *(past(50.0, n, **others) for n in range(20)))
    expected = experience.expect(a_claim("c"), 100.0)
    assert expected.source is source
    assert expected.median_s == 50.0


def test_nothing_known_is_said_so():
    """Neither a number nor a guess."""
    expected = Experience().expect(a_claim("c"), 0.0)
    assert (expected.median_s, expected.at_most_s, str(expected)) == (None, None, "unknown")


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 50)), max_size=60), st.integers(0, 50))
def test_future_teaches_nothing(ends, now_s):
    """What ends later changes nothing of what was expected before."""
    claims = [past(took_s, ended_s) for took_s, ended_s in ends]
    before = taught(*(claim for claim in claims if claim.ended_s <= now_s))
    claim = a_claim("c")
    assert taught(*claims).expect(claim, now_s) == before.expect(claim, now_s)


def test_old_claims_are_forgotten():
    """Only the latest teach: people change."""
    experience = taught(
        *(past(1.0, n) for n in range(RECENT)), *(past(9.0, 1000 + n) for n in range(RECENT))
    )
    assert experience.expect(a_claim("c"), 5000.0).median_s == 9.0


def test_learning_out_of_order_is_refused():
    """Whoever teaches the past must not have taught what came after."""
    experience = taught(past(1.0, 10.0))
    with pytest.raises(ValueError, match="comes after"):
        experience.learn(past(1.0, 9.0))


def test_view_tells_said_from_learned():
    """The user's word stays; what is learned comes with what nine of ten stay below."""
    experience = taught(*(past(10.0 * n, n) for n in range(1, 11)))
    view = a_view([a_host("h", 1)], [a_claim("a"), a_claim("b", expected_s=7.0)], now_s=100.0)
    a, b = with_expected(view, experience).claims
    assert (a.expected_s, a.expected_at_most_s) == (50.0, 90.0)
    assert (b.expected_s, b.expected_at_most_s) == (7.0, None)
