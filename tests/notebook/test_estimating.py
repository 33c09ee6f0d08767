"""An estimate reads as an offer: what now, what when, what instead."""

from datetime import timedelta
from typing import Any

import pytest

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.estimating import Estimate, estimate, headline
from jupyter_gpupool.notebook.moments import clock, here_and_now, roughly

ONE = ({"workers": 2}, {"workers": 4, "model": "L40S"}, {"workers": 4, "model": "T4"})


def an_estimate(**changes: Any) -> Estimate:
    said = {"workers": 4, "queue": "vision", "now": False, "place": 2, "reason": "All in use."}
    return Estimate.model_validate({**said, **changes})


def test_headline_offers_what_would_start_sooner() -> None:
    """Fewer now, all of it later, or another model."""
    now = here_and_now()
    soon = now + timedelta(minutes=25)
    told = headline(an_estimate(starts_at=soon, starts_by=soon, alternatives=ONE))
    about = clock(roughly(soon, now), now)
    assert told == f"2 now, 4 about {about}; now if you take L40S or T4"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"now": True}, "4 now"),
        ({}, "4 later, nobody can tell when"),
        ({"never": True}, "4 never, as the pool is"),
    ],
)
def test_headline_claims_no_more_than_is_known(changes: dict[str, Any], told: str) -> None:
    """Now, never, or nobody knows."""
    assert headline(an_estimate(**changes)) == told


def test_what_was_learned_is_shown_as_such() -> None:
    """And the reason, as the pass gave it."""
    shown = an_estimate(expected_s=600.0, expected_from="learned from 9 past claims of anybody")
    assert repr(shown).splitlines()[1:] == [
        "It would be 2nd in line of vision. All in use.",
        "It is thought to take 10 min, learned from 9 past claims of anybody.",
    ]
    assert "<li" in shown._repr_html_()


@pytest.mark.e2e
def test_nothing_is_claimed_by_asking(pool: Pool) -> None:
    """A real pool answers, and holds no claim more."""
    before = _claims_of(pool)
    assert estimate(1, pool=pool).now
    assert estimate(60, pool=pool, expected="5min").never
    # One of an earlier test may still have been on its way out.
    assert _claims_of(pool) <= before


def _claims_of(pool: Pool) -> set[str]:
    return {view.id for view in pool.background.run(lambda _say: pool.client.claims())}
