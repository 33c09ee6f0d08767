"""A simulated day under policies on idle claims: nobody who works loses anything, loops do."""

from datetime import UTC, datetime

import pytest

from jupyter_gpupool.pool.idle_rule import Ground, IdleRule, KeepAlive, LeastUse, Terms
from jupyter_gpupool.simulation.idle_day import DayOutcome, play
from jupyter_gpupool.simulation.idle_users import DAY_MIN, Kind, people

_MIDNIGHT = datetime(2026, 12, 1, tzinfo=UTC)
_STRICT = IdleRule(
    name="strict",
    idle=Terms(warn_s=0, after_s=60),
    keep_alive=KeepAlive(longest_s=0, per_day_s=0),
)
_LOOPS = IdleRule(name="loops", least_use=LeastUse(below=20, over_s=4 * 3600))


def _day(*rules: IdleRule, seed: int = 1, wanted: bool = True) -> DayOutcome:
    return play(people(20, seed), rules, _MIDNIGHT, lambda _: wanted)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", [IdleRule(name="all"), _STRICT, _LOOPS], ids=lambda r: r.name)
def test_nobody_loses_what_they_work_with(rule, seed):
    """Not even by a rule of one minute, nor in an outage, nor while only the kernel is busy."""
    day = _day(rule, seed=seed)
    assert day.takings
    assert [taking for taking in day.takings if taking.is_wrong] == []


def test_without_rules_nothing_is_won():
    """And nobody is warned."""
    day = _day()
    assert (day.won, day.warnings.total(), day.takings) == (0, 0, [])


def test_only_when_wanted_takes_nothing_on_a_quiet_day():
    """Nobody waits, so everybody keeps what they have."""
    day = _day(IdleRule(name="all", only_when_wanted=True), wanted=False)
    assert day.takings == []


def test_a_loop_is_idle_to_nobody_and_hardly_used_to_its_rule():
    """Every hostile user passes the defaults, and none the rule on use."""
    hostile = {user.name for user in people(20, 1) if user.kind is Kind.HOSTILE}
    by_defaults, by_loops = (
        {taking.user.name for taking in _day(rule).takings if taking.user.kind is Kind.HOSTILE}
        for rule in (IdleRule(name="all"), _LOOPS)
    )
    assert (by_defaults, by_loops) == (set(), hostile)


def test_a_shut_notebook_gives_its_devices_back_within_minutes():
    """Orphans go long before idleness would take them."""
    assert Ground.ORPHANED in {taking.ground for taking in _day(IdleRule(name="all")).takings}


def test_a_day_is_the_same_each_time():
    """By its seed, to the last minute."""
    assert people(20, 7) == people(20, 7) != people(20, 8)
    assert all(len(user.day) == DAY_MIN for user in people(20, 7))
