"""Planned starts of claims with time limits, on nodes that each take one of their workers.

A case's property is Slurm's: no larger claim of lower priority is planned before a smaller one of
higher priority. Ours plans with the forecast that estimates use, in the order of the pass.
"""

from collections.abc import Mapping
from typing import Any

from cases.outcome import PASSED, Outcome, Verdict

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.scheduling.amounts import NO_LIMIT
from jupyter_gpupool.scheduling.estimates import estimates
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, link
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape

_MINUTE_S = 60.0


def run(case: Mapping[str, Any]) -> Outcome:
    """Plan all starts, and look for a pair that breaks the property or a start that differs."""
    given, expected = case["input"], case["expect"]
    starts = _starts(given)
    wrong = list(_out_of_order(given["jobs"], starts)) if "property" in expected else []
    wrong += _differing(expected, starts)
    known = {"property", "running_now", "waiting", "planned_start_min"}
    if not known & set(expected):
        return Outcome(Verdict.DIFFERS, f"cannot tell what is expected: {sorted(expected)}")
    return Outcome(Verdict.DIFFERS, "; ".join(wrong)) if wrong else PASSED


def _starts(given: Mapping[str, Any]) -> dict[str, float]:
    queue = Queue(name="all", guarantee=(0,), limit=(NO_LIMIT,))
    hosts = (
        HostShape(HostId(f"n{at:04}"), (DeviceView(DeviceUuid(f"n{at:04}-0"), "gpu", 1),))
        for at in range(given["nodes"])
    )
    view = PoolView(
        now_s=0.0,
        tree=link(("devices",), [queue]),
        hosts=tuple(hosts),
        claims=tuple(_claim(job, at) for at, job in enumerate(given["jobs"])),
    )
    found = estimates(view).items()
    return {name: e.start_p50_s for name, e in found if e.start_p50_s is not None}


def _claim(job: Mapping[str, Any], at: int) -> ClaimView:
    limit_s = job["walltime_min"] * _MINUTE_S
    return ClaimView(
        id=ClaimId(job["name"]),
        owner=UserName("someone"),
        queue="all",
        priority=job["priority"],
        since_s=float(at) / 1e6,
        minimum=job["nodes"],
        maximum=job["nodes"],
        expected_s=limit_s,
        time_limit_s=limit_s,
    )


def _out_of_order(jobs: list[Mapping[str, Any]], starts: Mapping[str, float]) -> list[str]:
    """Pairs of which the larger one of lower priority is planned earlier, or alone."""
    return [
        f"{later['name']} starts before {first['name']}"
        for first in jobs
        for later in jobs
        if first["priority"] > later["priority"]
        and first["nodes"] <= later["nodes"]
        and starts.get(later["name"], float("inf")) < starts.get(first["name"], float("inf"))
    ]


def _differing(expected: Mapping[str, Any], starts: Mapping[str, float]) -> list[str]:
    now = {name for name, start_s in starts.items() if start_s == 0.0}
    wrong = [
        f"{name} does not run now" for name in expected.get("running_now", ()) if name not in now
    ]
    wrong += [f"{name} runs now" for name in expected.get("waiting", ()) if name in now]
    for name, minutes in expected.get("planned_start_min", {}).items():
        if starts.get(name) != minutes * _MINUTE_S:
            wrong.append(f"{name} starts at {starts.get(name)} s instead of {minutes} min")
    return wrong
