"""For which claims a rule is: all that it asks has to hold, and nothing else matters."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.hours import Hours
from jupyter_gpupool.pool.idle_match import Match, Subject
from jupyter_gpupool.pool.ids import UserName

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
ANNS = Subject(
    user=UserName("ann"),
    queues=("vision", "research"),
    models=("NVIDIA A100-SXM4-80GB",),
    priority="batch",
    devices=2000,
)


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        (Match(), True),
        (Match(queues=frozenset({"vision"})), True),
        (Match(queues=frozenset({"research"})), True),
        (Match(queues=frozenset({"speech"})), False),
        (Match(users=frozenset({"ann", "bob"})), True),
        (Match(users=frozenset({"bob"})), False),
        (Match(models=("h100", "a100")), True),
        (Match(models=("h100",)), False),
        (Match(priorities=frozenset({"batch"})), True),
        (Match(priorities=frozenset({"normal"})), False),
        (Match(least=2000, most=2000), True),
        (Match(least=2001), False),
        (Match(most=1999), False),
        (Match(hours=Hours(zone=ZoneInfo("UTC"), begin_min=720, end_min=721)), True),
        (Match(hours=Hours(zone=ZoneInfo("UTC"), begin_min=721, end_min=780)), False),
        (Match(queues=frozenset({"vision"}), users=frozenset({"bob"})), False),
    ],
)
def test_a_rule_is_for_claims_that_meet_all_it_asks(match, fits):
    """A queue stands for all below it too, a model is a word in any case."""
    assert match.fits(ANNS, NOON) is fits


def test_a_size_that_no_claim_has_is_refused():
    """At least three and at most two is a slip."""
    with pytest.raises(BadRequest, match="at least 3 and at most 2"):
        Match(least=3000, most=2000)
