"""Slurm's classic factor 2^(-usage / shares), which we do not have."""

from collections.abc import Mapping
from typing import Any

from cases.outcome import Outcome, Verdict

_WHY = (
    "Slurm turns usage into one factor of a sum of priorities, and lets a parent's usage weigh on "
    "its children; ours corrects the weights among siblings, P = max(0, w' + k(w' - u')), so that "
    "a share stays a number of devices."
)


def run(case: Mapping[str, Any]) -> Outcome:
    """Say why it does not apply."""
    del case
    return Outcome(Verdict.NOT_APPLICABLE, _WHY)
