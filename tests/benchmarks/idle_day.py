"""A day of 100 users under five policies on idle claims: what each wins back, and at what price.

    python tests/benchmarks/idle_day.py [--json] [--users 100] [--seed 20261201]

Virtual time, the judgement proper. Users are busy, bursty, forgetful or hostile (a loop of tiny
tasks, and every keep there is); agents and servers are not heard now and then. Wrong is a taking
from somebody who worked then, or within the time they were said to be idle.
"""

import argparse
import time
from collections import Counter
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from harness import Figure, Target, finish, note, options, table

from jupyter_gpupool.pool.hours import Hours
from jupyter_gpupool.pool.idle_match import Match
from jupyter_gpupool.pool.idle_rule import IdleRule, KeepAlive, LeastUse, Terms
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.simulation.idle_day import DayOutcome, play
from jupyter_gpupool.simulation.idle_users import Kind, User, people

_MIDNIGHT = datetime(2026, 12, 1, tzinfo=UTC)
_SEED = 20_261_201
_NIGHT = Hours(zone=ZoneInfo("Europe/Berlin"), begin_min=20 * 60, end_min=7 * 60)
_LOOPS = LeastUse(below=20, over_s=4 * 3600, notice_s=900, action=OnIdle.HIBERNATE)
POLICIES = {
    "defaults": (IdleRule(name="all"),),
    "strict": (
        IdleRule(
            name="all",
            idle=Terms(warn_s=300, after_s=600),
            keep_alive=KeepAlive(longest_s=1800, per_day_s=3600, reason=True),
        ),
    ),
    "night": (
        IdleRule(name="night", match=Match(hours=_NIGHT), idle=Terms(warn_s=300, after_s=600)),
        IdleRule(name="day", idle=Terms(warn_s=2700, after_s=3600)),
    ),
    "when wanted": (IdleRule(name="all", only_when_wanted=True),),
    "busy loops": (IdleRule(name="all", least_use=_LOOPS),),
}


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    note(f"{chosen.users} users, seed {chosen.seed}")
    users = people(chosen.users, chosen.seed)
    outcomes, took_s = {}, {}
    for name, rules in POLICIES.items():
        began_s = time.process_time()
        outcomes[name] = play(users, rules, _MIDNIGHT, _is_wanted)
        took_s[name] = time.process_time() - began_s
    _print(users, outcomes)
    samples = sum(len(user.day) for user in users) * len(outcomes)
    finish(_figures(users, outcomes, samples / sum(took_s.values())), as_json=chosen.json)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--seed", type=int, default=_SEED)


def _is_wanted(minute: int) -> bool:
    """In the morning and in the afternoon, when everybody comes."""
    return 9 * 60 <= minute < 12 * 60 or 14 * 60 <= minute < 18 * 60


def _print(users: tuple[User, ...], outcomes: dict[str, DayOutcome]) -> None:
    kinds = Counter(user.kind for user in users)
    heads = ("policy", "GPU-hours won", "of unused", "wrong", "missed", "keeps", *kinds)
    rows = [
        (
            name,
            f"{day.won / 60:.0f}",
            f"{day.won / day.unused:.0%}",
            sum(taking.is_wrong for taking in day.takings),
            sum(taking.is_missed for taking in day.takings),
            day.keeps,
            *(f"{day.warnings[kind] / count:.1f}" for kind, count in kinds.items()),
        )
        for name, day in outcomes.items()
    ]
    first = next(iter(outcomes.values()))
    title = f"{first.held / 60:.0f} GPU-hours held, {first.unused / 60:.0f} of them unused"
    table(f"{title}; warnings a user, by kind", heads, rows)


def _figures(
    users: tuple[User, ...], outcomes: dict[str, DayOutcome], per_s: float
) -> tuple[Figure, ...]:
    takings = [taking for day in outcomes.values() for taking in day.takings]
    defaults = outcomes["defaults"]
    hostile = [t for t in outcomes["busy loops"].takings if t.user.kind is Kind.HOSTILE]
    return (
        Figure(
            key="wrong_reclaims",
            meaning="takings from somebody who worked, all policies",
            value=sum(taking.is_wrong for taking in takings),
            target=Target(bound=0.0),
        ),
        Figure(
            key="won_of_unused",
            meaning="defaults: won back, of what nobody worked with",
            value=defaults.won / defaults.unused,
        ),
        Figure(
            key="warnings_a_user",
            meaning="defaults: warnings a user",
            value=defaults.warnings.total() / len(users),
        ),
        Figure(
            key="loops_taken",
            meaning="busy loops: hostile users that lost their devices, of all",
            value=len({taking.user.name for taking in hostile})
            / sum(user.kind is Kind.HOSTILE for user in users),
            target=Target(bound=1.0, at_most=False),
        ),
        Figure(key="samples_per_s", meaning="samples judged per second of processor", value=per_s),
    )


if __name__ == "__main__":
    main()
