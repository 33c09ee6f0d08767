"""Small pools, and claims to place in them: what the tests of placement are built from."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.scheduling.bits import bits
from jupyter_gpupool.scheduling.inventory import Inventory, Spot
from jupyter_gpupool.scheduling.ledger import Ledger, Member
from jupyter_gpupool.scheduling.pool_view import ClaimView
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, WorkerShape
from jupyter_gpupool.scheduling.spots import place

GIB = 2**30


def a_host(
    name: str, devices: int | tuple[DeviceView, ...], *, model: str = "A100", **terms: object
) -> HostShape:
    """Builds a host with devices named after it: `h1-0`, `h1-1`, ..., or with given ones."""
    if isinstance(devices, int):
        devices = some_devices(name, devices, model=model)
    return HostShape(HostId(name), devices)._replace(**terms)


def some_devices(
    host: str, count: int, *, model: str = "A100", memory_gib: int = 80
) -> tuple[DeviceView, ...]:
    """Builds devices of one kind, named after their host."""
    names = (DeviceUuid(f"{host}-{n}") for n in range(count))
    return tuple(DeviceView(name, model, memory_gib * GIB) for name in names)


def a_part(share: int, **terms: object) -> WorkerShape:
    """Builds the shape of a worker on a part of a device, in thousandths."""
    return WorkerShape(devices=0, share=share)._replace(**terms)


def taken(inventory: Inventory, host: str, count: int, shape: WorkerShape | None = None) -> None:
    """Holds so many whole devices of a host, the first that are free."""
    number = inventory.host_number(HostId(host))
    assert number is not None
    bay = inventory.bays_of(number)[0]
    devices = inventory.choose(bay, count)
    inventory.take(shape or WorkerShape(devices=count), Spot(bay, devices))


def shared(inventory: Inventory, host: str, share: int, sharer: str = "") -> None:
    """Holds a part of the first device of a host."""
    number = inventory.host_number(HostId(host))
    assert number is not None
    inventory.take(a_part(share), Spot(inventory.bays_of(number)[0], 1, share), sharer)


def spots_for(
    inventory: Inventory,
    shape: WorkerShape,
    count: int = 1,
    *,
    sharer: str = "",
    near: Sequence[str] = (),
    at: Sequence[Spot] = (),
) -> tuple[Spot, ...]:
    """Places so many workers of a claim that has some already."""
    view = ClaimView(
        id=ClaimId("c"),
        owner=UserName("ann"),
        queue="q",
        worker=shape,
        minimum=count,
        maximum=count,
        near=frozenset(map(HostId, near)),
    )
    member = Member(view, 0, (0,), (0,), (), sharer, 0, list(at))
    # Of the books of a pass, placement looks at what is free alone.
    ledger = cast("Ledger", SimpleNamespace(inventory=inventory))
    return place(ledger, member, count, count)


def by_host(inventory: Inventory, spots: Sequence[Spot]) -> dict[str, int]:
    """Counts the workers on each host."""
    names = [inventory.named(spot).host_id for spot in spots]
    return {name: names.count(name) for name in sorted(set(names))}


def recounted(inventory: Inventory) -> list[tuple[int, int]]:
    """Counts anew, bay by bay, what `by_free` and `with_parts` should say."""
    return [(bay.whole.bit_count(), len(bay.parts)) for bay in inventory.bays]


def as_counted(inventory: Inventory) -> list[tuple[int, int]]:
    """What `by_free` says, bay by bay, and how many parts there are where `with_parts` says so."""
    free = {bay: n for n, bays in enumerate(inventory.by_free) for bay in bits(bays)}
    return [
        (free[number], len(bay.parts) if inventory.with_parts >> number & 1 else 0)
        for number, bay in enumerate(inventory.bays)
    ]
