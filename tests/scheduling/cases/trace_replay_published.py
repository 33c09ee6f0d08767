"""Published results of a replay whose job log is not at hand."""

from collections.abc import Mapping
from typing import Any

from cases.outcome import Outcome, Verdict

_WHY = (
    "The published means are of the full job log, which is not part of the data; "
    "benchmarks/replay_philly.py replays what is, against a static split on the same jobs."
)


def run(case: Mapping[str, Any]) -> Outcome:
    """Say why it does not apply."""
    del case
    return Outcome(Verdict.NOT_APPLICABLE, _WHY)
