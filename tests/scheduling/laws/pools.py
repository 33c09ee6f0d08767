"""Random small pools for the laws, and how often each law is tried.

`LAW_EXAMPLES=2000` tries each two thousand times; without it a run of all takes under a minute.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.pool.rules import Rules, Sharing
from jupyter_gpupool.scheduling.amounts import NO_LIMIT, WHOLE_DEVICE
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.queues import Queue, QueueTree
from jupyter_gpupool.scheduling.shape import (
    DeviceView,
    HeldWorker,
    HostShape,
    Obstacle,
    WorkerShape,
)

EXAMPLES = int(os.environ.get("LAW_EXAMPLES", "40"))
LAW = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
NOW_S = 1000.0
_ROLLS = 256
_T = TypeVar("_T")
YOUNG_S = 100.0
"""How long a claim keeps its leases where its queue says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Which pools to draw.

    Attributes:
        plain: One kind of device, whole ones, one per worker, on one host, none out of order.
        gangs: Claims may need several workers together.
        young: Queues may say how long claims keep their leases.
        firm: Claims may be firm.
        moves: Claims may be moved.
        holding: Claims may hold something from before, whatever the tree says of it.
        depth: Levels of the tree at most.
        limits: Queues may have limits.
        usage: Queues may have used something before.
        weights: Queues may differ in weight and priority.
        priorities: Claims may differ in priority.
    """

    plain: bool = False
    gangs: bool = True
    young: bool = True
    firm: bool = True
    moves: bool = True
    holding: bool = True
    depth: int = 3
    limits: bool = True
    usage: bool = True
    weights: bool = True
    priorities: bool = True


ANY = Kind()


def a_host(name: str, devices: int, *, model: str = "A100", **terms: object) -> HostShape:
    """A host with devices named after it."""
    views = (DeviceView(DeviceUuid(f"{name}-{n}"), model, 40) for n in range(devices))
    return HostShape(HostId(name), tuple(views), **terms)  # type: ignore[arg-type]


def a_queue(name: str, parent: str | None = None, guarantee: int = 0, **terms: object) -> Queue:
    """A queue that is guaranteed so many devices."""
    limit = terms.pop("limit", None)
    return Queue(
        name=name,
        parent=parent,
        guarantee=(guarantee * WHOLE_DEVICE,),
        limit=(NO_LIMIT if limit is None else int(limit) * WHOLE_DEVICE,),  # type: ignore[call-overload]
        **terms,  # type: ignore[arg-type]
    )


def a_claim(name: str, queue: str, minimum: int = 1, **terms: object) -> ClaimView:
    """A claim that waits since so many seconds as its name says, or 0."""
    terms.setdefault("maximum", minimum)
    terms.setdefault("owner", UserName("ann"))
    digits = "".join(filter(str.isdigit, name))
    terms.setdefault("since_s", float(digits or 0))
    return ClaimView(id=ClaimId(name), queue=queue, minimum=minimum, **terms)  # type: ignore[arg-type]


def a_pool(
    hosts: Iterable[HostShape],
    queues: Iterable[Queue],
    claims: Iterable[ClaimView],
    **rules: object,
) -> PoolView:
    """A pool at `NOW_S` whose queues are sound."""
    rules.setdefault("sharing", Sharing.ANYONE)
    return PoolView(
        now_s=NOW_S,
        tree=grow(("devices",), queues),
        hosts=tuple(hosts),
        claims=tuple(claims),
        rules=Rules(**rules),  # type: ignore[arg-type]
    )


class _Dice:
    """Choices read from one string of bytes: a hundred draws of hypothesis at the price of one.

    It shrinks towards the first of all options.
    """

    def __init__(self, rolls: bytes) -> None:
        self._rolls = iter(rolls)

    def upto(self, most: int) -> int:
        """Choose from 0 to this."""
        return next(self._rolls, 0) % (most + 1)

    def pick(self, *options: _T) -> _T:
        """Choose one."""
        return options[self.upto(len(options) - 1)]


def pools(kind: Kind = ANY) -> st.SearchStrategy[PoolView]:
    """A pool of up to four hosts, a tree of queues, and up to eight claims."""
    return st.binary(min_size=_ROLLS, max_size=_ROLLS).map(lambda rolls: _pool(_Dice(rolls), kind))


def _pool(dice: _Dice, kind: Kind) -> PoolView:
    hosts = tuple(_hosts(dice, kind))
    capacity = sum(d.counts for h in hosts if h.takes_more for d in h.devices)
    queues = list[Queue]()
    _grow_below(dice, kind, queues, parent=None, amount=capacity, depth=1)
    tree = grow(("devices",), queues)
    return PoolView(
        now_s=NOW_S,
        tree=tree,
        hosts=hosts,
        claims=tuple(_claims(dice, kind, tree, hosts)),
        rules=Rules(
            sharing=dice.pick(*Sharing),
            may_move=kind.moves and dice.pick(False, True),
            usage_weight=dice.pick(0.0, 0.5) if kind.usage else 0.0,
            # Reservations have laws of their own: what is kept for one lies idle for others.
            blocked_for_s=1e9,
        ),
        usage={name: float(dice.pick(0, 0, 10, 100)) for name in tree.queues if kind.usage},
    )


def _hosts(dice: _Dice, kind: Kind) -> Iterator[HostShape]:
    if kind.plain:
        yield a_host("h0", 1 + dice.upto(7))
        return
    for number in range(1 + dice.upto(3)):
        yield _host(dice, f"h{number}", dice.upto(4))


def _host(dice: _Dice, name: str, count: int) -> HostShape:
    host = a_host(
        name,
        count,
        model=dice.pick("A100", "A100", "H100"),
        cpu=dice.pick(0, 0, 3000),
        rack=dice.pick("", "r1"),
        labels=dice.pick(frozenset[str](), frozenset({"big"})),
        takes_more=dice.pick(True, True, True, False),
    )
    broken = dice.upto(count) if dice.pick(False, False, False, True) else 0
    return host._replace(devices=(*map(_broken, host.devices[:broken]), *host.devices[broken:]))


def _broken(device: DeviceView) -> DeviceView:
    return device._replace(may_be_leased=False, counts=False, obstacle=Obstacle.QUARANTINED)


def _grow_below(
    dice: _Dice, kind: Kind, queues: list[Queue], *, parent: str | None, amount: int, depth: int
) -> None:
    """Add children that are guaranteed no more than so many devices together."""
    for number in range(1 + dice.upto(2)):
        guarantee = dice.upto(amount)
        amount -= guarantee
        name = f"{parent or 'q'}{number}"
        queues.append(_queue(dice, kind, name, parent, guarantee, created=len(queues)))
        if depth < kind.depth and dice.pick(False, True):
            _grow_below(dice, kind, queues, parent=name, amount=guarantee, depth=depth + 1)


def _queue(
    dice: _Dice, kind: Kind, name: str, parent: str | None, guarantee: int, *, created: int
) -> Queue:
    young = (None, None, 0.0, YOUNG_S) if kind.young else (None,)
    limited = kind.limits and dice.pick(False, False, True)
    return a_queue(
        name,
        parent,
        guarantee,
        limit=guarantee + dice.upto(3) if limited else None,
        weight=dice.pick(1.0, 1.0, 2.0, 3.0, 0.0) if kind.weights else 1.0,
        priority=dice.pick(0, 0, 1) if kind.weights else 0,
        reclaim_min_runtime_s=dice.pick(*young),
        own_min_runtime_s=dice.pick(*young),
        created=created,
    )


def _claims(
    dice: _Dice, kind: Kind, tree: QueueTree, hosts: Sequence[HostShape]
) -> Iterator[ClaimView]:
    free = [(host.id, device) for host in hosts for device in host.devices]
    for _ in range(dice.upto(3) if free else 0):
        cut = dice.upto(len(free))
        free = [*free[cut:], *free[:cut]]
    for number in range(1 + dice.upto(7)):
        claim = _claim(dice, kind, tree, number)
        yield _holding(dice, claim, free) if kind.holding else claim


def _claim(dice: _Dice, kind: Kind, tree: QueueTree, number: int) -> ClaimView:
    minimum = dice.pick(1, 1, 2, 3) if kind.gangs else 1
    return a_claim(
        f"c{number}",
        dice.pick(*tree.leaves),
        minimum,
        maximum=minimum + dice.pick(0, 0, 1, 3),
        owner=UserName(dice.pick("ann", "bob")),
        priority=dice.pick(0, 0, 1, 2) if kind.priorities else 0,
        firm=kind.firm and dice.pick(False, False, False, True),
        # Not the order of the names.
        since_s=float(number * 5 % 8),
        worker=WorkerShape() if kind.plain else _shape(dice),
        can_hibernate=dice.pick(True, True, False),
    )


def _shape(dice: _Dice) -> WorkerShape:
    model = dice.pick("", "", "a100", "h100")
    if dice.pick(False, False, True):
        return WorkerShape(devices=0, share=dice.pick(250, 500, 700), model=model)
    return WorkerShape(
        devices=dice.pick(1, 1, 1, 2, 3),
        model=model,
        cpu=dice.pick(0, 0, 0, 1000),
        labels=dice.pick(frozenset[str](), frozenset[str](), frozenset({"big"})),
        spread=dice.pick(False, False, False, True),
    )


def _holding(dice: _Dice, claim: ClaimView, free: list[tuple[HostId, DeviceView]]) -> ClaimView:
    """Let a claim hold devices that are free, as if others had placed it by other rules."""
    wanted, held = dice.pick(0, 0, claim.minimum, claim.maximum), list[HeldWorker]()
    each = claim.worker.devices or 1
    while len(held) < wanted and len(free) >= each:
        mine, free[:] = sorted(free[:each]), free[each:]
        hosts, kinds = {host for host, _ in mine}, {device.model for _, device in mine}
        if len(hosts) == len(kinds) == 1 and all(device.may_be_leased for _, device in mine):
            held.append(HeldWorker(mine[0][0], tuple(device.uuid for _, device in mine)))
    if len(held) < claim.minimum:
        # What was tried for it stays free.
        return claim
    return replace(
        claim,
        held=tuple(held),
        started_s=NOW_S - dice.pick(500.0, 200.0, 10.0) + claim.since_s,
        idle=dice.pick(False, True),
    )
