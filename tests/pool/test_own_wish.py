"""Users choose what becomes of their idle claims within bounds, and are told of them at once."""

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.idle_match import OwnWish
from jupyter_gpupool.pool.idle_rule import Choice, IdleRule
from jupyter_gpupool.pool.own_wish import check_wish, what_becomes_of
from jupyter_gpupool.pool.request import OnIdle

PLAIN = IdleRule(name="plain")
OPEN = IdleRule(
    name="open",
    choice=Choice(actions=frozenset({OnIdle.RELEASE}), shortest_s=600, longest_s=7200),
)


def test_no_wish_is_never_refused():
    """Whatever the policy says."""
    check_wish((), OwnWish())


@pytest.mark.parametrize(
    "wish",
    [
        OwnWish(action=OnIdle.RELEASE),
        OwnWish(action=OnIdle.HIBERNATE),
        OwnWish(after_s=7200),
        OwnWish(action=OnIdle.RELEASE, after_s=600),
    ],
)
def test_what_some_rule_leaves_to_users_is_accepted(wish):
    """The rule's own action among it."""
    check_wish((PLAIN, OPEN), wish)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (OwnWish(action=OnIdle.SHRINK), "on_idle"),
        (OwnWish(after_s=599), "idle_after_s"),
        (OwnWish(action=OnIdle.RELEASE, after_s=7201), "on_idle"),
    ],
)
def test_what_no_rule_grants_is_refused_with_what_may_be_chosen(wish, field):
    """In one sentence, with the bounds."""
    with pytest.raises(BadRequest, match="No rule") as refused:
        check_wish((PLAIN, OPEN), wish)
    assert refused.value.field == field
    offer = 'hibernate or release after 10 min to 2 h (rule "open")'
    assert refused.value.hint == f"They may choose: {offer}."


def test_policy_that_leaves_nothing_to_users_says_so():
    """A wish that would be forgotten is refused."""
    with pytest.raises(BadRequest, match="leaves nothing to users"):
        check_wish((PLAIN,), OwnWish(action=OnIdle.RELEASE))


@pytest.mark.parametrize(
    ("wish", "rule", "said"),
    [
        (OwnWish(), PLAIN, ""),
        (OwnWish(action=OnIdle.RELEASE, after_s=600), OPEN, ""),
        (OwnWish(after_s=1200), OPEN, ""),
        (
            OwnWish(action=OnIdle.RELEASE, after_s=8 * 3600),
            OPEN,
            (
                "You chose release after 8 h for when it is idle;"
                ' rule "open" of the policy makes it release after 2 h.'
            ),
        ),
        (
            OwnWish(action=OnIdle.RELEASE),
            PLAIN,
            (
                "You chose release for when it is idle;"
                ' rule "plain" of the policy makes it hibernate after 20 min.'
            ),
        ),
        (
            OwnWish(after_s=600),
            None,
            "You chose after 10 min for when it is idle; nothing is done, for no rule asks.",
        ),
    ],
)
def test_what_the_policy_makes_of_a_wish_is_said(wish, rule, said):
    """In a sentence, and not at all where it is done as wished."""
    assert what_becomes_of(wish, rule) == said
