"""Who may claim in which queue, and how urgently."""

import pytest

from jupyter_gpupool.pool.errors import BadRequest, NotAllowed
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.pool.policy import Policy, QueueTerms

ANN, BOB, EVA = UserName("ann"), UserName("bob"), UserName("eva")


@pytest.fixture
def policy() -> Policy:
    """A queue for all, one for a group, one for ann."""
    return Policy(
        queues=(
            QueueTerms(name="all", users=("*",)),
            QueueTerms(name="phd", groups=("phd",)),
            QueueTerms(name="own", users=("ann",)),
        ),
        groups=(("phd", ("ann", "bob")),),
    )


def test_most_specific_queue_comes_first(policy):
    """By name, then by group, then everybody's."""
    assert policy.queues_of(ANN) == ("own", "phd", "all")
    assert policy.queues_of(BOB) == ("phd", "all")
    assert policy.queues_of(EVA) == ("all",)


def test_claim_without_queue_goes_to_its_users_first(policy):
    """A wanted one is taken if it is theirs."""
    assert policy.queue_for(BOB, "") == "phd"
    assert policy.queue_for(BOB, "all") == "all"


def test_strange_queue_is_refused_with_the_allowed_ones(policy):
    """Whether it exists or not."""
    with pytest.raises(NotAllowed, match='queue="phd" or queue="all"'):
        policy.queue_for(BOB, "own")
    with pytest.raises(BadRequest, match=r'no queue "vision".*queue="all"'):
        policy.queue_for(EVA, "vision")


def test_user_without_queue_is_told_so():
    """Nobody claims where the admin has put nobody."""
    policy = Policy(queues=(QueueTerms(name="own", users=("ann",)),))
    with pytest.raises(NotAllowed, match="bob belongs to no queue"):
        policy.queue_for(BOB, "")


def test_unknown_priority_is_refused_with_the_known_ones(policy):
    """As the policy names them."""
    assert policy.priority_class("batch").rank < policy.priority_class("interactive").rank
    with pytest.raises(BadRequest, match="interactive, normal, batch"):
        policy.priority_class("urgent")


def test_default_policy_has_one_queue_for_everybody():
    """Nothing is taken from anybody without an admin's word."""
    assert Policy().queue_for(EVA, "") == "default"
    assert not Policy().reclaims
