"""A case's nodes, queues and jobs as our hosts, queues and claims."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.pool.rules import Rules, Sharing
from jupyter_gpupool.scheduling.amounts import (
    BASE_KINDS,
    DEVICES,
    WHOLE_DEVICE,
    Amount,
    Kinds,
    from_edge,
)
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, link
from jupyter_gpupool.scheduling.shape import DeviceView, HeldWorker, HostShape, WorkerShape

# Nobody has waited for long in a case.
_RULES = Rules(sharing=Sharing.ANYONE, may_move=True, usage_weight=0.0, blocked_for_s=inf)
_BYTES_PER_MB = 1_000_000
_AMPLE = 1 << 50
"""Cores or memory of a node of which a case says nothing."""
_CPU_OF_WORKER = 1000
"""Thousandths of a core that a worker needs where a case counts cores and says nothing of it."""


def pool_of(given: Mapping[str, Any]) -> PoolView:
    """Build the pool of a case's input."""
    kinds = BASE_KINDS if _counts_all(given) else (DEVICES,)
    slots = _Slots(given)
    return PoolView(
        now_s=1e6,
        tree=link(kinds, _queues(given, kinds)),
        hosts=tuple(map(_host, given["nodes"])),
        claims=tuple(_claim(job, kinds, slots) for job in given["jobs"]),
        rules=_RULES,
    )


def _counts_all(given: Mapping[str, Any]) -> bool:
    words = [key for part in ("nodes", "queues", "jobs") for item in given[part] for key in item]
    return any("cpu" in word or "mem" in word for word in words)


def _host(node: Mapping[str, Any]) -> HostShape:
    devices = tuple(DeviceView(uuid, "gpu", 1) for uuid in _uuids(node))
    cpu, memory = node.get("cpu_milli", _AMPLE), node.get("mem_bytes", _AMPLE)
    return HostShape(HostId(node["name"]), devices, int(cpu), int(memory))


def _uuids(node: Mapping[str, Any]) -> list[DeviceUuid]:
    return [DeviceUuid(f"{node['name']}-{number}") for number in range(node["gpus"])]


def _queues(given: Mapping[str, Any], kinds: Kinds) -> Iterator[Queue]:
    # The weights of a case are those of devices; other resources are shared equally there.
    weighs = any(job["gpus_per_worker"] for job in given["jobs"])
    for number, spec in enumerate([*given["parents"], *given["queues"]]):
        yield Queue(
            name=spec["name"],
            parent=spec.get("parent"),
            guarantee=_amount(spec, "quota", kinds),
            limit=_amount(spec, "limit", kinds),
            weight=spec["over_quota_weight"] if weighs else 1,
            created=number,
        )


def _amount(spec: Mapping[str, Any], word: str, kinds: Kinds) -> Amount:
    devices, memory = spec.get(f"gpu_{word}", -1), spec.get(f"mem_{word}", -1)
    values = (
        devices if devices < 0 else round(devices * WHOLE_DEVICE),
        round(spec.get(f"cpu_milli_{word}", -1)),
        memory if memory < 0 else round(memory * _BYTES_PER_MB),
    )
    return from_edge(values[: len(kinds)])


class _Slots:
    """Which devices the workers of a case that run already hold."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._free = {node["name"]: _uuids(node) for node in given["nodes"]}
        self._named: dict[tuple[str, str], DeviceUuid] = {}
        self._halves: dict[tuple[str, int], DeviceUuid] = {}
        for job in given["jobs"]:
            for worker in job["workers"]:
                for slot in worker.get("gpu_slot") or ():
                    self._name(worker["node"], slot)

    def _name(self, host: str, slot: str) -> None:
        if (host, slot) not in self._named:
            self._named[host, slot] = self._free[host].pop(0)

    def of(self, worker: Mapping[str, Any], shape: WorkerShape) -> tuple[DeviceUuid, ...]:
        host = worker["node"]
        if worker.get("gpu_slot"):
            return tuple(self._named[host, slot] for slot in worker["gpu_slot"])
        if shape.share:
            return (self._part(host, shape.share),)
        return tuple(self._free[host].pop(0) for _ in range(shape.devices))

    def _part(self, host: str, share: int) -> DeviceUuid:
        begun = self._halves.pop((host, share), None)
        if begun is not None:
            return begun
        uuid = self._free[host].pop(0)
        if share * 2 <= WHOLE_DEVICE:
            self._halves[host, share] = uuid
        return uuid


def _claim(job: Mapping[str, Any], kinds: Kinds, slots: _Slots) -> ClaimView:
    shape, running = _shape(job, kinds), _running(job["workers"])
    held = tuple(HeldWorker(HostId(w["node"]), slots.of(w, shape)) for w in running)
    return ClaimView(
        id=ClaimId(job["name"]),
        owner=UserName("someone"),
        queue=job["queue"],
        priority=job["priority"],
        firm=not job["preemptible"],
        since_s=job["arrival_order"],
        minimum=job["min_workers"],
        maximum=len(job["workers"]),
        worker=shape,
        held=held,
        started_s=job["arrival_order"] if held else None,
    )


def _running(workers: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [worker for worker in workers if worker["state"] == "running"]


def _shape(job: Mapping[str, Any], kinds: Kinds) -> WorkerShape:
    whole, part = divmod(round(job["gpus_per_worker"] * WHOLE_DEVICE), WHOLE_DEVICE)
    return WorkerShape(
        devices=whole,
        share=part,
        cpu=job.get("cpu_milli_per_worker", _CPU_OF_WORKER if kinds == BASE_KINDS else 0),
        memory_bytes=int(job.get("mem_per_worker", 0)),
    )
