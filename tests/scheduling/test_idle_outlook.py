"""What a user reads when they ask which rule is for their claim."""

from dataclasses import replace

import pytest
from idle_world import ANNS, Watching, a_rule

from jupyter_gpupool.pool.idle_rule import Terms
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.scheduling.idle_outlook import outlook_in_words

RELEASES = a_rule(idle=Terms(action=OnIdle.RELEASE))


def after(minutes: int, rule=RELEASES, **more):
    """What is said after so many idle minutes."""
    claim = Watching(rules=(rule,))
    claim.see_minutes(minutes, **more)
    return outlook_in_words(claim.watch, rule, ANNS)


def test_it_says_when_what_would_happen_and_how_far_that_is():
    """By which rule, too."""
    assert after(12) == (
        'By rule "all" it is warned after 15 min and ends after 20 min of idleness.'
        " It is idle for 12 min now: 8 min are left."
    )


def test_claim_that_is_used_or_unknown_has_no_time_running():
    """Unknown is never idle."""
    assert after(12, gpu_peak=None, gpu_mean=None).endswith("It is not known to be idle now.")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (None, "No rule on idle claims is for it."),
        (replace(RELEASES, idle=None), "takes nothing for being idle alone"),
        (replace(RELEASES, only_when_wanted=True), "if others wait for its devices"),
        (a_rule(idle=Terms(action=OnIdle.HIBERNATE)), "hibernates after 20 min"),
    ],
)
def test_each_kind_of_rule_is_named(rule, said):
    """In the words of what it does."""
    assert said in outlook_in_words(Watching().watch, rule, ANNS)
