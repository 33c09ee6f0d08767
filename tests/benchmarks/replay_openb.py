"""How many GPU shares packing strands: ours, best fit, dot product and random on one sequence.

    python tests/benchmarks/replay_openb.py [--json] [--rounds 2] [--seed 1]

Hosts and pods of Alibaba's openb cluster: 1,523 hosts, 6,212 GPUs; cores and memory count. As in
the paper that published them (Weng et al., ATC'23) pods are drawn from the trace, with replacement,
until they have asked for 1.3 times all GPUs; nobody leaves, and who finds no room is passed over.
"""

import argparse
import csv
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import Figure, Target, finish, note, options, table
from packers import Ours, Packer, Scored, alignment, at_random, best_fit, dot_product

from jupyter_gpupool.pool.ids import DeviceUuid, HostId
from jupyter_gpupool.scheduling.amounts import WHOLE_DEVICE
from jupyter_gpupool.scheduling.bays import Kind
from jupyter_gpupool.scheduling.fragmentation import Fragmentation, HostState
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, WorkerShape
from jupyter_gpupool.scheduling.workload import Demand

TRACES = Path(__file__).parents[2] / ".." / "shared" / "data" / "traces" / "alibaba-openb"
_MIB = 2**20
_ASKED = 1.3
_ANY_KIND = Kind("", 0, frozenset(), is_open=True, has_devices=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What one way of packing left at the end, in devices.

    Attributes:
        unallocated: Free, whole or in part.
        stranded: Of that, what the next pod of the trace cannot use, on average over all its pods.
        useless: Of that, what no pod of the trace can use.
        put: Pods that found room, of all.
        each_s: Time for one pod.
    """

    unallocated: float
    stranded: float
    useless: float
    put: float
    each_s: float


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    if not TRACES.is_dir():
        note("Left out: the openb trace is not there (../shared/data/traces/alibaba-openb).")
        return
    hosts, pods = tuple(_hosts()), tuple(_pods(chosen.pods))
    note(f"{len(hosts)} hosts, {_capacity(hosts)} GPUs, {len(pods)} pods, seed {chosen.seed}.")
    rounds: list[Mapping[str, Left]] = []
    for number in range(chosen.rounds):
        seed = chosen.seed + number
        rounds.append(_round(hosts, pods, seed))
        _show(f"Left at the end, in GPUs (seed {seed})", rounds[-1])
    finish(_figures(rounds), as_json=chosen.json)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=2, help="sequences drawn (default 2)")
    parser.add_argument("--seed", type=int, default=1, help="of the first sequence (default 1)")
    parser.add_argument("--pods", default="default", help="list of pods: default or multigpu50")


def _hosts() -> Iterator[HostShape]:
    for row in _rows("openb_node_list_all_node.csv"):
        devices = (DeviceUuid(f"{row['sn']}-{n}") for n in range(int(row["gpu"])))
        yield HostShape(
            HostId(row["sn"]),
            tuple(DeviceView(uuid, row["model"], 0) for uuid in devices),
            cpu=int(row["cpu_milli"]),
            memory_bytes=int(row["memory_mib"]) * _MIB,
        )


def _pods(kind: str) -> Iterator[WorkerShape]:
    for row in _rows(f"openb_pod_list_{kind}.csv"):
        count, share = int(row["num_gpu"]), int(row["gpu_milli"])
        is_part = count == 1 and share < WHOLE_DEVICE
        yield WorkerShape(
            devices=0 if is_part else count,
            share=share if is_part else 0,
            cpu=int(row["cpu_milli"]),
            memory_bytes=int(row["memory_mib"]) * _MIB,
        )


def _rows(name: str) -> Iterator[Mapping[str, str]]:
    with (TRACES / name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _capacity(hosts: Iterable[HostShape]) -> int:
    return sum(len(host.devices) for host in hosts)


def _round(
    hosts: Sequence[HostShape], pods: Sequence[WorkerShape], seed: int
) -> Mapping[str, Left]:
    """Let each way of packing have the same sequence."""
    sequence = tuple(_drawn(pods, _ASKED * _capacity(hosts) * WHOLE_DEVICE, random.Random(seed)))
    ways: Mapping[str, Callable[[], Packer]] = {
        "ours": lambda: Ours(hosts),
        "best fit": lambda: Scored(hosts, best_fit),
        "dot product": lambda: Scored(hosts, dot_product),
        "alignment": lambda: Scored(hosts, alignment),
        "random": lambda: Scored(hosts, at_random(seed)),
    }
    return {name: _left(way(), sequence, pods) for name, way in ways.items()}


def _drawn(
    pods: Sequence[WorkerShape], thousandths: float, draws: random.Random
) -> Iterator[WorkerShape]:
    while thousandths > 0:
        shape = draws.choice(pods)
        thousandths -= shape.thousandths
        yield shape


def _left(packer: Packer, sequence: Sequence[WorkerShape], pods: Sequence[WorkerShape]) -> Left:
    started_s = time.process_time()
    put = sum(packer.put(shape) for shape in sequence)
    each_s = (time.process_time() - started_s) / len(sequence)
    states = tuple(packer.states())
    kinds = {shape: count for shape, count in Counter(pods).items() if shape.thousandths}
    measure = Fragmentation(tuple(Demand(*item) for item in kinds.items()), [_ANY_KIND])
    stranded = sum(map(measure.unusable, states)) / measure.total_weight
    return Left(
        unallocated=sum(map(_free, states)) / WHOLE_DEVICE,
        stranded=stranded / WHOLE_DEVICE,
        useless=sum(_useless(state, kinds) for state in states) / WHOLE_DEVICE,
        put=put / len(sequence),
        each_s=each_s,
    )


def _free(state: HostState) -> int:
    (bay,) = state.bays
    return bay.whole * WHOLE_DEVICE + sum(bay.parts)


def _useless(state: HostState, kinds: Iterable[WorkerShape]) -> int:
    """Thousandths that no pod can use, for want of cores or memory or because they are too few."""
    (bay,) = state.bays
    fitting = [k for k in kinds if k.cpu <= state.cpu and k.memory_bytes <= state.memory]
    of_use = any(k.devices <= bay.whole for k in fitting)
    parts = [p for p in bay.parts if not any(0 < k.share <= p for k in fitting)]
    return sum(parts) + (0 if of_use else bay.whole * WHOLE_DEVICE)


def _show(title: str, left: Mapping[str, Left]) -> None:
    heads = ("packing", "unallocated", "stranded", "of use to none", "pods placed", "µs a pod")
    rows = [
        (
            name,
            f"{one.unallocated:.1f}",
            f"{one.stranded:.1f}",
            f"{one.useless:.1f}",
            f"{one.put:.1%}",
            f"{one.each_s * 1e6:.0f}",
        )
        for name, one in left.items()
    ]
    table(title, heads, rows)


def _figures(rounds: Sequence[Mapping[str, Left]]) -> list[Figure]:
    """Ours beside each other way: the worst of all rounds has to be below 1."""
    figures = []
    for name in rounds[0]:
        key = name.replace(" ", "_")
        for what in ("unallocated", "stranded", "useless"):
            values = [getattr(left[name], what) for left in rounds]
            meaning = f"{what} GPUs, {name}"
            figures.append(
                Figure(key=f"{what}_{key}", meaning=meaning, value=statistics.mean(values))
            )
        if name != "ours":
            worst = max(left["ours"].stranded / left[name].stranded for left in rounds)
            meaning = f"stranded GPUs of ours by those of {name}, worst round"
            figures.append(
                Figure(key=f"ours_by_{key}", meaning=meaning, value=worst, target=Target(bound=1.0))
            )
    return figures


if __name__ == "__main__":
    main()
