"""Pools of any size for the benchmarks of scheduling: four fifths held, many waiting.

Everything is drawn from a seed: hosts of three models in racks, queues in three levels with half of
the pool guaranteed, claims of parts of devices, of single devices and of gangs.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.scheduling.amounts import NO_LIMIT, WHOLE_DEVICE
from jupyter_gpupool.scheduling.ledger import Ledger, Turn
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, link
from jupyter_gpupool.scheduling.rounds import Steps, decide
from jupyter_gpupool.scheduling.shape import DeviceView, HeldWorker, HostShape, WorkerShape
from jupyter_gpupool.scheduling.tree_shares import divide_tree

_MODELS = ("a100", "h100", "l40s")
_HOSTS_A_RACK = 20
_USERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a pool is.

    Attributes:
        queues: How many at the top, below each of those, and below each of those.
        pending: Claims that wait.
    """

    hosts: int
    queues: tuple[int, int, int]
    pending: int
    per_host: int = 8
    held: float = 0.8

    @property
    def devices(self) -> int:
        """All devices."""
        return self.hosts * self.per_host


FULL = Size(hosts=1250, queues=(10, 10, 10), pending=5000)
SMALL = Size(hosts=8, queues=(2, 2, 2), pending=20)


def a_pool(size: Size, *, seed: int) -> PoolView:
    """Draw a pool."""
    draws, names = random.Random(seed), count()
    hosts = tuple(_host(number, size.per_host) for number in range(size.hosts))
    tree = _tree(size)
    leaves = [name for name in tree.top_down if name.count("/") == 2]
    held = _holding(hosts, size, leaves, draws, names)
    waiting = (_waiting(leaves, draws, next(names)) for _ in range(size.pending))
    return PoolView(now_s=1e6, tree=tree, hosts=hosts, claims=(*held, *waiting))


def an_arrival(tree: QueueTree, draws: random.Random, number: int) -> ClaimView:
    """Draw a claim that asks for no more than a host has."""
    leaves = [name for name in tree.top_down if not tree.children[name]]
    return _waiting(leaves, draws, number, most=8)


def _host(number: int, devices: int) -> HostShape:
    model = _MODELS[number % len(_MODELS)]
    uuids = (DeviceUuid(f"d{number}-{n}") for n in range(devices))
    shown = tuple(DeviceView(uuid, model, 80 << 30) for uuid in uuids)
    return HostShape(HostId(f"h{number:05}"), shown, rack=f"r{number // _HOSTS_A_RACK}")


def _tree(size: Size) -> QueueTree:
    tops, middles, leaves = size.queues
    queues, capacity = list[Queue](), size.devices
    for x in range(tops):
        top = f"o{x}"
        queues.append(_queue(top, None, capacity // tops // 2))
        for y in range(middles):
            middle = f"{top}/d{y}"
            half = capacity // tops // middles // 2
            queues.append(_queue(middle, top, half, weight=1 + y % 3))
            queues += [_queue(f"{middle}/t{z}", middle, half // leaves) for z in range(leaves)]
    return link(("devices",), queues)


def _queue(name: str, parent: str | None, guarantee: int, weight: float = 1.0) -> Queue:
    return Queue(
        name=name,
        parent=parent,
        guarantee=(guarantee * WHOLE_DEVICE,),
        limit=(NO_LIMIT,),
        weight=weight,
    )


def _holding(
    hosts: Sequence[HostShape],
    size: Size,
    leaves: Sequence[str],
    draws: random.Random,
    names: Iterator[int],
) -> Iterator[ClaimView]:
    free = [list(host.devices) for host in hosts]
    left = int(size.devices * size.held)
    while left > 0:
        host, wanted = draws.randrange(len(hosts)), draws.choice([1, 1, 1, 2, 2, 4, 8])
        is_part = draws.random() < 0.1
        taken = 1 if is_part else wanted
        if len(free[host]) < taken:
            continue
        left -= taken
        workers = tuple(HeldWorker(hosts[host].id, (free[host].pop().uuid,)) for _ in range(taken))
        shape = WorkerShape(devices=0, share=500) if is_part else WorkerShape()
        claim = _claim(leaves, draws, next(names), taken, shape)
        yield replace(claim, held=workers, started_s=claim.since_s)


def _waiting(
    leaves: Sequence[str], draws: random.Random, number: int, *, most: int = 32
) -> ClaimView:
    model = draws.choice(["", "", "a100", "h100"])
    if draws.random() < 0.2:
        shape = WorkerShape(devices=0, share=draws.choice([250, 500]), model=model)
        return _claim(leaves, draws, number, 1, shape)
    workers = min(most, draws.choice([1, 1, 2, 4, 8, 16, 32]))
    return _claim(leaves, draws, number, workers, WorkerShape(model=model))


def _claim(
    leaves: Sequence[str], draws: random.Random, number: int, workers: int, shape: WorkerShape
) -> ClaimView:
    return ClaimView(
        id=ClaimId(f"c{number:06}"),
        owner=UserName(f"u{number % _USERS}"),
        queue=draws.choice(leaves),
        priority=draws.choice([0, 1, 2]),
        since_s=float(number),
        minimum=workers,
        maximum=workers,
        worker=shape,
    )


def books_of(view: PoolView) -> Ledger:
    """Books of a pool with its shares entered."""
    ledger = Ledger(view)
    division = divide_tree(view.tree, ledger.total, ledger.requests(), view.usage)
    ledger.set_shares(division.shares)
    return ledger


def filled(view: PoolView) -> PoolView:
    """The pool once whatever is free is granted to whoever can be served with it."""
    ledger = books_of(view)
    decide(ledger, Steps.GRANT, explain=False)
    return replace(view, claims=tuple(_views(ledger)))


def _views(ledger: Ledger) -> Iterator[ClaimView]:
    for member in ledger.members.values():
        member.turn = Turn.NONE
        ledger.fulfil(member)
        held = ledger.named(member.spots)
        started_s = member.view.started_s if member.view.held else ledger.now_s
        yield replace(member.view, held=held, promised=(), started_s=started_s if held else None)
