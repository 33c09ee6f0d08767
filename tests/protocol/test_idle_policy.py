"""Rules on idle claims as an admin writes them: read whole, or refused with key and line."""

from zoneinfo import ZoneInfo

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.hours import Day, Hours
from jupyter_gpupool.pool.idle_match import Match
from jupyter_gpupool.pool.idle_rule import (
    Choice,
    IdleRule,
    KeepAlive,
    LeastUse,
    Otherwise,
    Terms,
)
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol.policy import parse_policy

QUEUE = '[queues.vision]\nusers = ["*"]\n'
WHOLE = f"""{QUEUE}
[[idle.rules]]
name = "night"
match = {{ queues = ["vision"], users = ["ann"], models = ["A100"], priorities = ["batch"], \
gpus = {{ min = 1, max = 2.5 }}, hours = "20:00-06:00", days = ["fri"], zone = "Europe/Berlin" }}
signals = ["tasks", "gpu"]
gpu_below = 0.1
warn = "5min"
after = "10min"
action = "release"
only_when_wanted = true
otherwise = "release"
keep_alive = {{ longest = "1h", per_day = "1h", reason = true }}
orphan = {{ after = "1min", action = "release" }}
least_use = {{ below = 0.05, over = "6h", notice = "30min", action = "release" }}
longest = {{ after = "7d", notice = "1d", action = "hibernate" }}
choice = {{ actions = ["hibernate"], after = ["2min", "1h"] }}
[[idle.rules]]
name = "all"
"""


def test_every_key_of_a_rule_is_read():
    """Parts of a device become thousandths, times seconds, hours those of a zone."""
    assert parse_policy(WHOLE).idle[0] == IdleRule(
        name="night",
        match=Match(
            queues=frozenset({"vision"}),
            users=frozenset({"ann"}),
            models=("a100",),
            priorities=frozenset({"batch"}),
            least=1000,
            most=2500,
            hours=Hours(
                zone=ZoneInfo("Europe/Berlin"),
                begin_min=1200,
                end_min=360,
                days=frozenset({Day.FRI}),
            ),
        ),
        signals=frozenset({Signal.TASKS, Signal.GPU}),
        gpu_below=100,
        idle=Terms(warn_s=300, after_s=600, action=OnIdle.RELEASE),
        orphaned=Terms(warn_s=0, after_s=60, action=OnIdle.RELEASE),
        least_use=LeastUse(below=50, over_s=21_600, notice_s=1800, action=OnIdle.RELEASE),
        longest=Terms(warn_s=518_400, after_s=604_800),
        keep_alive=KeepAlive(longest_s=3600, per_day_s=3600, reason=True),
        only_when_wanted=True,
        otherwise=Otherwise.RELEASE,
        choice=Choice(actions=frozenset({OnIdle.HIBERNATE}), shortest_s=120, longest_s=3600),
    )


def test_a_rule_of_a_name_alone_has_good_defaults():
    """Warned at fifteen minutes, hibernated at twenty, kept for two hours at most."""
    assert parse_policy(WHOLE).idle[1] == IdleRule(name="all")


def test_without_rules_nothing_is_taken_as_idle():
    """A policy that says nothing of idleness takes nothing."""
    assert parse_policy(QUEUE).idle == ()


def test_idleness_alone_may_take_nothing():
    """`after = "never"` leaves a rule its other grounds."""
    [rule] = parse_policy(f'{QUEUE}[[idle.rules]]\nname = "x"\nafter = "never"').idle
    assert (rule.idle, rule.orphaned) == (None, IdleRule(name="y").orphaned)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('warn = "20min"', "warn"),
        ('after = "2min"', "after"),
        ('after = "never"\naction = "release"', "action"),
        ('action = "explode"', "action"),
        ('signals = ["clients"]', "signals"),
        ('signals = ["mouse"]', "signals.0"),
        ("gpu_below = 0", "gpu_below"),
        ("gpu_belo = 0.1", "gpu_belo"),
        ('match = { queues = ["speech"] }', "match.queues"),
        ('match = { priorities = ["exam"] }', "match.priorities"),
        ("match = { gpus = { min = 3, max = 2 } }", "match.gpus"),
        ('match = { hours = "20:00-06:00" }', "match.zone"),
        ('match = { zone = "UTC" }', "match.zone"),
        ('match = { days = ["mon"], zone = "Mars/Olympus" }', "match.zone"),
        ('match = { days = ["mon"], zone = "../etc/passwd" }', "match.zone"),
        ('match = { hours = "20:00-20:00", zone = "UTC" }', "match.hours"),
        ('match = { hours = "8-25", zone = "UTC" }', "match.hours"),
        ('match = { hours = "20:00-24:30", zone = "UTC" }', "match.hours"),
        ('match = { days = [], zone = "UTC" }', "match.days"),
        ('orphan = { after = "5s" }', "orphan.after"),
        ('least_use = { below = 0.1, over = "5min" }', "least_use.over"),
        ('least_use = { below = 2, over = "6h" }', "least_use.below"),
        ('longest = { after = "30min" }', "longest.notice"),
        ('keep_alive = { longest = "5h" }', "keep_alive.longest"),
        ('choice = { after = ["1h", "2h"] }', "choice.after"),
        ('choice = { after = ["2h", "10min"] }', "choice.after"),
    ],
)
def test_a_wrong_rule_is_refused_by_key_and_line(line, key):
    """Whoever has to mend it need not look for it."""
    with pytest.raises(BadRequest) as refused:
        parse_policy(f'{QUEUE}[[idle.rules]]\nname = "x"\n{line}\n')
    wrong = len(f"{QUEUE}1\n2\n{line}".splitlines())
    assert refused.value.field == f"idle.rules.0.{key}"
    assert refused.value.field in refused.value.message
    assert refused.value.hint.startswith(f"See line {wrong}.")


def test_a_rule_that_never_decides_is_refused():
    """Behind one that fits every claim, it would be there in vain."""
    rules = '[[idle.rules]]\nname = "all"\n[[idle.rules]]\nname = "late"\n'
    with pytest.raises(BadRequest, match=r'Rule "late" never decides.* See line 6'):
        parse_policy(QUEUE + rules)
