"""The books of what is free: nothing is held twice, and every change has its way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packing import a_host, a_part, as_counted, recounted, shared, some_devices, spots_for, taken

from jupyter_gpupool.pool.ids import DeviceUuid, HostId
from jupyter_gpupool.scheduling.bits import bits
from jupyter_gpupool.scheduling.inventory import Inventory, Spot
from jupyter_gpupool.scheduling.shape import HeldWorker, WorkerShape

SHAPES = st.sampled_from(
    [
        WorkerShape(devices=1),
        WorkerShape(devices=2, cpu=3000),
        WorkerShape(devices=0, cpu=1000, memory_bytes=5),
        a_part(300),
        a_part(500, cpu=1000),
        a_part(999),
    ]
)
SHARERS = st.sampled_from(["", "ann", "bob"])
CLAIMS = st.lists(st.tuples(SHAPES, SHARERS, st.integers(1, 3)), max_size=25)


def _pool() -> Inventory:
    mixed = (*some_devices("h1", 2), *some_devices("m", 3, model="MIG 1g"))
    return Inventory(
        [
            a_host("h0", 4, cpu=8000, memory_bytes=100),
            a_host("h1", mixed, cpu=6000, memory_bytes=100),
            a_host("h2", 2),
        ]
    )


def _seen(inventory: Inventory) -> tuple:
    """All that books say, in a form that can be compared."""
    bays = [
        (bay.whole, bay.held, bay.shared, dict(bay.parts), dict(bay.sharers))
        for bay in inventory.bays
    ]
    sharing = {sharer: found for sharer, found in inventory.shared_by.items() if found}
    counted = [bays for bays in inventory.by_free if bays]
    return bays, counted, inventory.with_parts, sharing, inventory.cpu, inventory.memory


def _held(inventory: Inventory, claims: list) -> list[tuple[WorkerShape, Spot]]:
    """Places and holds claim by claim, as far as they fit."""
    held = []
    for shape, sharer, count in claims:
        for spot in spots_for(inventory, shape, count, sharer=sharer):
            inventory.take(shape, spot, sharer)
            held.append((shape, spot))
    return held


@given(claims=CLAIMS, order=st.randoms(use_true_random=False))
def test_giving_back_undoes_taking(claims: list, order) -> None:
    """Whatever was held, in whatever order it goes, the books end as they began."""
    inventory, before = _pool(), _seen(_pool())
    held = _held(inventory, claims)
    order.shuffle(held)
    for shape, spot in held:
        inventory.give(shape, spot)
    assert _seen(inventory) == before


@given(claims=CLAIMS, gone=st.sets(st.integers(0, 60)))
def test_counts_equal_a_recount(claims: list, gone: set[int]) -> None:
    """The counts by which bays are found never differ from what is in the bays."""
    inventory = _pool()
    for number, (shape, spot) in enumerate(_held(inventory, claims)):
        if number in gone:
            inventory.give(shape, spot)
    assert as_counted(inventory) == recounted(inventory)


@given(claims=CLAIMS)
def test_no_device_is_held_twice(claims: list) -> None:
    """No device is held for more than all of it, and no host for more cores than it has."""
    inventory, used = _pool(), dict[tuple[int, int], int]()
    for _, spot in _held(inventory, claims):
        for position in bits(spot.devices):
            place = (spot.bay, position)
            used[place] = used.get(place, 0) + (spot.share or 1000)
    assert all(amount <= 1000 for amount in used.values())
    assert min(*inventory.cpu, *inventory.memory) >= 0


@given(claims=CLAIMS, more=CLAIMS)
def test_copies_change_apart(claims: list, more: list) -> None:
    """What happens to a copy does not reach the original, nor its choices."""
    inventory = _pool()
    _held(inventory, claims)
    before, copy = _seen(inventory), inventory.copy()
    assert _held(copy, more) == _held(_again(claims), more)
    assert _seen(inventory) == before


@given(claims=CLAIMS, gone=st.sets(st.integers(0, 60)))
def test_scores_follow_the_books(claims: list, gone: set[int]) -> None:
    """Costs kept change by change are those that books made anew would find."""
    inventory, shape = _pool(), a_part(300)
    inventory.scores.ranking(shape, shared=True)
    for number, (held, spot) in enumerate(_held(inventory, claims)):
        if number in gone:
            inventory.give(held, spot)
    anew = inventory.copy()
    anew._scores = None
    kept = inventory.scores.ranking(shape, shared=True)
    assert list(kept) == list(anew.scores.ranking(shape, shared=True))


def _again(claims: list) -> Inventory:
    inventory = _pool()
    _held(inventory, claims)
    return inventory


def test_held_device_cannot_be_taken() -> None:
    """Taking what another holds, wholly or in part, is refused and changes nothing."""
    inventory = Inventory([a_host("h0", 2)])
    taken(inventory, "h0", 1)
    inventory.take(a_part(600), Spot(0, 0b10, 600), "ann")
    for shape, spot in (
        (WorkerShape(), Spot(0, 0b01)),
        (WorkerShape(), Spot(0, 0b10)),
        (a_part(500), Spot(0, 0b01, 500)),
        (a_part(500), Spot(0, 0b10, 500)),
    ):
        with pytest.raises(ValueError, match=r"leased|held"):
            inventory.take(shape, spot, "ann")
    assert inventory.free_thousandths() == 400


def test_device_out_of_order_is_held_but_not_freed() -> None:
    """A lease on a device that may not be leased again stays until it ends, then nobody gets it."""
    (device,) = some_devices("h0", 1)
    inventory = Inventory([a_host("h0", (device._replace(may_be_leased=False),))])
    spot = Spot(0, 1)
    assert not inventory.is_open(spot)
    assert inventory.hold(WorkerShape(), spot)
    inventory.give(WorkerShape(), spot)
    assert inventory.free_thousandths() == 0


def test_device_named_by_two_hosts_is_leased_once() -> None:
    """Should two hosts name one device, only the first may have it leased."""
    inventory = Inventory([a_host("h0", 1), a_host("h1", some_devices("h0", 1))])
    assert inventory.free_thousandths() == 1000
    assert not spots_for(inventory, WorkerShape(), 2)


def test_workers_are_found_by_their_names() -> None:
    """A spot and the worker it names are the same, and what is gone is not found."""
    inventory = Inventory([a_host("h0", 4)])
    (spot,) = spots_for(inventory, WorkerShape(devices=2))
    assert inventory.spot(inventory.named(spot), WorkerShape(devices=2)) == spot
    assert inventory.spot(HeldWorker(HostId("h9"), ()), WorkerShape()) is None
    assert inventory.spot(HeldWorker(HostId("h0"), (DeviceUuid("x"),)), WorkerShape()) is None


def test_replaced_host_keeps_what_is_held() -> None:
    """A host seen anew, now draining, keeps its leases and takes no more until it is back."""
    host = a_host("h0", 4, cpu=8000)
    inventory = Inventory([host])
    taken(inventory, "h0", 2, WorkerShape(devices=2, cpu=2000))
    assert inventory.replace(host._replace(takes_more=False, cpu=9000))
    assert not spots_for(inventory, WorkerShape(cpu=1000))
    assert inventory.replace(host)
    assert inventory.cpu == [6000]
    assert spots_for(inventory, WorkerShape(cpu=1000), 2)


def test_replaced_devices_follow_what_is_seen() -> None:
    """A device that may be leased again is free, unless somebody holds it."""
    shut = tuple(device._replace(may_be_leased=False) for device in some_devices("h0", 3))
    inventory = Inventory([a_host("h0", shut)])
    inventory.hold(WorkerShape(), Spot(0, 0b001))
    shared_one = inventory.hold(a_part(500), Spot(0, 0b010, 500), "ann")
    assert shared_one
    assert inventory.replace(a_host("h0", 3))
    assert (inventory.bays[0].whole, inventory.by_free[1]) == (0b100, 1)


def test_other_devices_need_new_books() -> None:
    """A host with other devices, or one that is new, is refused and nothing changes."""
    inventory = Inventory([a_host("h0", 2)])
    assert not inventory.replace(a_host("h0", 3))
    assert not inventory.replace(a_host("h1", 2))
    assert inventory.free_thousandths() == 2000


def test_sharers_are_known_until_their_last_part_goes() -> None:
    """Who shares where is kept by the part, not by the bay."""
    inventory = Inventory([a_host("h0", 2)])
    shared(inventory, "h0", 300, "ann")
    inventory.take(a_part(300), Spot(0, 0b10, 300), "ann")
    inventory.give(a_part(300), Spot(0, 0b01, 300))
    assert inventory.shared_by["ann"] == 1
    inventory.give(a_part(300), Spot(0, 0b10, 300))
    assert not inventory.shared_by["ann"]


@pytest.mark.parametrize("sharer", ["ann", ""])
def test_no_part_is_given_of_a_shared_device_that_is_out_of_order(sharer: str) -> None:
    """What is held of it stays held; nobody gets more until it may be leased again."""
    [device] = some_devices("h", 1)
    shut, shape = a_host("h", (device._replace(may_be_leased=False),)), a_part(400)
    inventory = Inventory([shut])
    assert inventory.hold(shape, Spot(0, 1, 400), sharer)
    assert not spots_for(inventory, shape, 1, sharer=sharer)
    assert inventory.free_thousandths() == 0
    with pytest.raises(ValueError, match="may not be leased"):
        inventory.take(shape, Spot(0, 1, 400), sharer)
    assert inventory.replace(a_host("h", (device,)))
    assert spots_for(inventory, shape, 1, sharer=sharer) == (Spot(0, 1, 400),)
