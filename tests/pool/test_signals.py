"""Samples refuse contradictions, and an orphan is told from whoever is only out of sight."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from jupyter_gpupool.pool.signals import Presence, Sample, Signal, orphaned

SAMPLE = Sample(life="boot", begin_ms=0, end_ms=1000, at=datetime(2026, 12, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "wrong",
    [
        {"end_ms": -1},
        {"end_ms": 3_600_001},
        {"at": datetime(2026, 12, 1)},  # noqa: DTZ001 - that it has no zone is the point
        {"active": frozenset({Signal.TASKS}), "quiet": frozenset({Signal.TASKS})},
        {"quiet": frozenset({Signal.GPU})},
        {"gpu_peak": 10, "gpu_mean": 20},
        {"gpu_peak": 1001},
    ],
)
def test_a_sample_that_contradicts_itself_cannot_be_made(wrong):
    """Naive times above all: comparing them with aware ones is how cullers crash."""
    with pytest.raises(ValueError, match=r"."):
        replace(SAMPLE, **wrong)


@pytest.mark.parametrize(
    ("what", "users", "told"),
    [
        ("kernel shut down", (Presence.GONE,), True),
        ("kernel restarts", (Presence.HERE,), False),
        ("laptop asleep with the Jupyter server on it", (Presence.UNKNOWN,), None),
        ("network cut between server and manager", (Presence.UNKNOWN,), None),
        ("browser closed: kernel and server go on", (Presence.HERE,), False),
        ("one notebook shut, another open", (Presence.GONE, Presence.HERE), False),
        ("one notebook shut, another out of sight", (Presence.GONE, Presence.UNKNOWN), None),
        ("every notebook shut", (Presence.GONE, Presence.GONE), True),
        ("nobody has attached yet", (), False),
    ],
)
def test_only_a_claim_that_lost_all_for_good_is_an_orphan(what, users, told):
    """A restart, a sleeping laptop, a cut network and a closed browser are none."""
    assert orphaned(users) is told, what
