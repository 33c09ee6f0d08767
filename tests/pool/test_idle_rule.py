"""A rule on idle claims: its defaults, what it may not say, what a user's own wish comes to."""

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.idle_match import Match, OwnWish, Subject
from jupyter_gpupool.pool.idle_rule import (
    Choice,
    IdleRule,
    KeepAlive,
    LeastUse,
    Otherwise,
    Terms,
    check_rules,
)
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Signal

BOUNDS = Choice(actions=frozenset({OnIdle.RELEASE}), shortest_s=300.0, longest_s=7200.0)


def test_defaults_warn_after_fifteen_minutes_and_hibernate_after_twenty():
    """And a user may keep a claim for two hours; an orphan has two minutes."""
    rule = IdleRule(name="all")
    assert rule.idle == Terms(warn_s=900, after_s=1200, action=OnIdle.HIBERNATE)
    assert (rule.keep_alive.longest_s, rule.orphaned and rule.orphaned.after_s) == (7200, 120)


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: Terms(warn_s=1200, after_s=1200), "warn"),
        (lambda: Terms(warn_s=-1, after_s=1200), "notice"),
        (lambda: LeastUse(below=0, over_s=3600), "below"),
        (lambda: LeastUse(below=100, over_s=60), "over"),
        (lambda: LeastUse(below=100, over_s=3600, notice_s=1), "notice"),
        (lambda: KeepAlive(longest_s=2, per_day_s=1), "longest"),
        (lambda: Choice(shortest_s=2, longest_s=1), "after"),
        (lambda: IdleRule(name=""), "name"),
        (lambda: IdleRule(name="x", gpu_below=0), "gpu_below"),
        (lambda: IdleRule(name="x", signals=frozenset({Signal.CLIENTS})), "signals"),
        (lambda: IdleRule(name="x", idle=None, choice=BOUNDS), "choice"),
        (
            lambda: IdleRule(name="x", idle=Terms(warn_s=0, after_s=90), choice=BOUNDS),
            "choice.after",
        ),
    ],
)
def test_a_contradiction_cannot_be_built(build, field):
    """Each names the key that it is about."""
    with pytest.raises(BadRequest) as refused:
        build()
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("wish", "terms"),
    [
        (OwnWish(), Terms(warn_s=900, after_s=1200)),
        (OwnWish(after_s=3600.0), Terms(warn_s=3300, after_s=3600)),
        (OwnWish(after_s=36_000.0), Terms(warn_s=6900, after_s=7200)),
        (OwnWish(after_s=1.0), Terms(warn_s=0, after_s=300)),
        (OwnWish(action=OnIdle.RELEASE), Terms(warn_s=900, after_s=1200, action=OnIdle.RELEASE)),
        (OwnWish(action=OnIdle.SHRINK), Terms(warn_s=900, after_s=1200)),
    ],
)
def test_a_users_own_wish_holds_within_the_bounds(wish, terms):
    """Beyond them the bound holds; an action that is not offered stays the rule's."""
    assert IdleRule(name="x", choice=BOUNDS).idle_terms(wish) == terms


def test_without_bounds_a_wish_changes_nothing():
    """The rule alone decides."""
    wish = OwnWish(action=OnIdle.RELEASE, after_s=9000.0)
    assert IdleRule(name="x").idle_terms(wish) == Terms()


@pytest.mark.parametrize(
    ("action", "otherwise", "claim", "done"),
    [
        (OnIdle.HIBERNATE, Otherwise.LEAVE, {"may_hibernate": True}, OnIdle.HIBERNATE),
        (OnIdle.HIBERNATE, Otherwise.LEAVE, {"may_hibernate": False}, None),
        (OnIdle.HIBERNATE, Otherwise.RELEASE, {"may_hibernate": False}, OnIdle.RELEASE),
        (OnIdle.RELEASE, Otherwise.LEAVE, {"may_hibernate": False}, OnIdle.RELEASE),
        (OnIdle.SHRINK, Otherwise.LEAVE, {"may_shrink": True}, OnIdle.SHRINK),
        (OnIdle.SHRINK, Otherwise.RELEASE, {"may_shrink": False}, None),
    ],
)
def test_what_cannot_be_done_is_left_or_released_as_the_rule_says(action, otherwise, claim, done):
    """A claim that cannot keep its results loses them only by a rule that says so."""
    subject = Subject(
        user=UserName("ann"), queues=("a",), models=(), priority="normal", devices=1000, **claim
    )
    assert IdleRule(name="x", otherwise=otherwise).can_do(action, subject) is done


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ((IdleRule(name="x", match=Match(least=1)), IdleRule(name="x")), "1.name"),
        ((IdleRule(name="x"), IdleRule(name="y")), "1.name"),
    ],
)
def test_rules_that_can_never_be_told_are_refused(rules, field):
    """Two of one name, and one behind a rule that fits every claim."""
    with pytest.raises(BadRequest) as refused:
        check_rules(rules)
    assert refused.value.field == field
