"""Records of samples: what shows the same becomes one, and nobody looks more idle for it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from idle_world import ANNS, NOON, SOMEBODY, TOLD, a_rule

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.signals import Sample, Signal
from jupyter_gpupool.scheduling.idle_dry_run import Recorded, dry_run
from jupyter_gpupool.scheduling.idle_recording import joined

OTHERS = (ClaimId("c-another"), ClaimId("c-third"))


def _record(minute: int, minutes: int = 1, **seen) -> Recorded:
    active = seen.pop("active", frozenset())
    sample = Sample(
        life="boot",
        begin_ms=minute * 60_000,
        end_ms=(minute + minutes) * 60_000,
        at=NOON + timedelta(minutes=minute + minutes),
        active=active,
        quiet=TOLD - active,
        **{"gpu_peak": 0, "gpu_mean": 0, "orphaned": False} | seen,
    )
    return Recorded(sample=sample, subject=ANNS)


def test_minutes_that_show_the_same_become_one_record():
    """With the highest use for all of it."""
    both = joined(_record(0, gpu_peak=11, gpu_mean=1), _record(1, gpu_peak=13, gpu_mean=2))
    assert both == _record(0, 2, gpu_peak=13, gpu_mean=2)


def test_who_waits_may_change_within_a_record():
    """Whether anybody does is what decides; the first ones are told."""
    last, new = replace(_record(0), wanted_by=SOMEBODY), replace(_record(1), wanted_by=OTHERS)
    assert joined(last, new) == replace(_record(0, 2), wanted_by=SOMEBODY)


@pytest.mark.parametrize(
    ("last", "new"),
    [
        (_record(0), _record(2)),
        (_record(0), _record(1, active=frozenset({Signal.TASKS}))),
        (_record(0), _record(1, gpu_peak=60)),
        (_record(0), _record(1, gpu_peak=None, gpu_mean=None)),
        (_record(0), _record(1, orphaned=True)),
        (_record(0, 59), _record(59, 2)),
        (_record(0), replace(_record(1), wanted_by=SOMEBODY)),
        (_record(0), replace(_record(1), protected=True)),
        (_record(0), replace(_record(1), subject=replace(ANNS, devices=1000))),
        (_record(0), replace(_record(1), keep_ms=60_000)),
    ],
)
def test_what_differs_in_anything_that_decides_stays_apart(last, new):
    """A gap, a signal, a step of use, one that waits, what is held, a keep; an hour is the most."""
    assert joined(last, new) is None


_MINUTES = st.lists(
    st.sampled_from(
        [
            *({},) * 6,
            {"gpu_peak": 12, "gpu_mean": 3},
            {"gpu_peak": 14, "gpu_mean": 4},
            {"active": frozenset({Signal.TASKS}), "gpu_peak": 900, "gpu_mean": 550},
            {"active": frozenset({Signal.TASKS}), "gpu_peak": 800, "gpu_mean": 40},
            {"gpu_peak": None, "gpu_mean": None},
            {"orphaned": True},
        ]
    ).flatmap(lambda seen: st.integers(1, 30).map(lambda count: [seen] * count)),
    max_size=12,
)


@given(_MINUTES)
def test_records_judge_to_the_minute_as_their_samples_do(parts):
    """And they never show less use."""
    minutes = [seen for part in parts for seen in part]
    samples = [_record(number, **seen) for number, seen in enumerate(minutes)]
    records: list[Recorded] = []
    for sample in samples:
        both = joined(records[-1], sample) if records else None
        records = [*records[:-1], both] if both else [*records, sample]
    plain, short = (dry_run([(ClaimId("c-mine"), each)], [a_rule()]) for each in (samples, records))
    assert _seen(short) == _seen(plain)
    assert sum(map(_use, records)) >= sum(map(_use, samples))


def _seen(run):
    return [(taking.evidence.until, taking.won_ms, taking.missed_ms) for taking in run.takings]


def _use(record: Recorded) -> int:
    return (record.sample.gpu_mean or 0) * (record.sample.end_ms - record.sample.begin_ms)
