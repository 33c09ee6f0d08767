"""Groups over the slots of a pool: who starts and who stops follows from each group's share."""

from collections.abc import Mapping, Sequence
from typing import Any

from cases.fair_share_division import bound, thousandths
from cases.outcome import Outcome, compared

from jupyter_gpupool.scheduling.amounts import WHOLE_DEVICE
from jupyter_gpupool.scheduling.shares import Demand, divide


def run(case: Mapping[str, Any]) -> Outcome:
    """Divide all slots among the groups, then walk through each group's tasks in list order."""
    given = case["input"]
    slots = thousandths(sum(node["gpus"] for node in given["nodes"]))
    demands = [_demand_of(at, group, given["tasks"]) for at, group in enumerate(given["groups"])]
    shares = divide(slots, demands, unit=WHOLE_DEVICE).shares
    start: list[str] = []
    stop: list[str] = []
    for demand, share in zip(demands, shares, strict=True):
        tasks = [task for task in given["tasks"] if task["group"] == demand.name]
        held = sum(thousandths(task["gpus"]) for task in tasks if _runs(task))
        if held > share:
            stop += _first_running(tasks, until=held - share)
        else:
            start += _fitting(tasks, share - held)
    found = {"start": sorted(start), "stop": sorted(stop)}
    return compared(found=found, expected={key: sorted(case["expect"][key]) for key in found})


def _demand_of(at: int, group: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> Demand:
    wanted = sum(task["gpus"] for task in tasks if task["group"] == group["name"])
    return Demand(
        name=group["name"],
        guarantee=0,
        request=thousandths(wanted),
        limit=bound(group.get("max_gpus")),
        weight=group.get("weight") or 1,
        created=at,
    )


def _runs(task: Mapping[str, Any]) -> bool:
    return task["running_on"] is not None


def _first_running(tasks: Sequence[Mapping[str, Any]], *, until: int) -> list[str]:
    """Name the first ones in line that together free what is too much."""
    names = []
    for task in tasks:
        if until > 0 and _runs(task) and task.get("preemptible", True):
            names.append(task["name"])
            until -= thousandths(task["gpus"])
    return names


def _fitting(tasks: Sequence[Mapping[str, Any]], room: int) -> list[str]:
    """Name those that wait and fit into what the share still allows, in line."""
    names = []
    for task in tasks:
        size = thousandths(task["gpus"])
        if not _runs(task) and size <= room:
            names.append(task["name"])
            room -= size
    return names
