"""What a judgement is called by people: why, by which rule, and what comes of it."""

import pytest
from idle_world import SOMEBODY, Watching, a_rule

from jupyter_gpupool.pool.idle_rule import LeastUse, Terms
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.scheduling.idle_verdicts import Cleared
from jupyter_gpupool.scheduling.idle_wording import in_words, why_cleared


def test_an_idle_claim_reads_what_its_signals_showed():
    """And by which rule of which revision, what becomes of it, and who waits."""
    claim = Watching(revision=7, wanted_by=SOMEBODY)
    claim.see_minutes(15)
    assert in_words(claim.verdicts[-1].evidence) == (
        "Idle for 15 min (no tasks, no calls, kernel at rest, GPU 0 %, 31 GiB held) while 1 claim"
        ' waits for it, by rule "all" of revision 7 of the policy. Its devices go back; its results'
        " are kept."
    )


@pytest.mark.parametrize(
    ("terms", "seen", "begins"),
    [
        (
            {"least_use": LeastUse(below=50, over_s=3600, action=OnIdle.RELEASE)},
            {"gpu_peak": 900, "gpu_mean": 20},
            "Hardly used in 1 h (no calls, kernel at rest, GPU 2 % on the mean, ",
        ),
        ({"longest": Terms(warn_s=3600, after_s=7200)}, {}, "Held for 1 h ("),
    ],
)
def test_other_grounds_are_named(terms, seen, begins):
    """A busy loop and a time that is over are no idleness."""
    claim = Watching(rules=(a_rule(**terms),))
    claim.see_minutes(60, Signal.TASKS, **seen)
    assert in_words(claim.verdicts[-1].evidence).startswith(begins)


def test_an_orphan_is_named():
    """Its user may read it in the list of ended claims."""
    claim = Watching()
    claim.see(60.0, orphaned=True)
    assert in_words(claim.verdicts[-1].evidence).startswith("Without kernel and client for 1 min (")


@pytest.mark.parametrize("cleared", Cleared)
def test_every_end_of_a_warning_has_its_words(cleared):
    """Nobody is left with a warning that went away for no reason."""
    assert why_cleared(cleared).endswith(".")
