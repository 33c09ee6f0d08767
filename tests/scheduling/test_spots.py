"""Where workers go: fewest hosts, near each other, and out of the way of whoever comes next."""

from hypothesis import given
from hypothesis import strategies as st
from packing import GIB, a_host, a_part, by_host, shared, some_devices, spots_for, taken

from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.scheduling import spots as places
from jupyter_gpupool.scheduling.inventory import Inventory, Spot
from jupyter_gpupool.scheduling.shape import WorkerShape
from jupyter_gpupool.scheduling.wish import Wish
from jupyter_gpupool.scheduling.workload import workload_of

CORE = 1000


def _placed(inventory: Inventory, shape: WorkerShape, count: int = 1, **terms) -> dict[str, int]:
    return by_host(inventory, spots_for(inventory, shape, count, **terms))


def _pool(*hosts) -> Inventory:
    return Inventory(hosts)


@given(
    free=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=5),
    each=st.integers(1, 3),
    count=st.integers(1, 9),
)
def test_room_is_told_without_choosing(free, each, count) -> None:
    """At a glance it is seen what choosing spots would come to."""
    inventory = _pool(
        *(a_host(f"h{n}", max(1, left + held)) for n, (left, held) in enumerate(free))
    )
    for n, (_, held) in enumerate(free):
        if held:
            taken(inventory, f"h{n}", held)
    shape = WorkerShape(devices=each)
    wish = Wish(shape, "", inventory.accepting(shape))
    found = places.spots_for(inventory, wish, count)
    assert places.fits(inventory, wish, count) is (len(found) == count)


# Gangs


def test_gang_goes_where_least_is_left() -> None:
    """Of the hosts that hold all of it, the fullest is filled."""
    inventory = _pool(a_host("h1", 8), a_host("h2", 4), a_host("h3", 4))
    taken(inventory, "h3", 1)
    assert _placed(inventory, WorkerShape(), 3) == {"h3": 3}


def test_large_gang_takes_fewest_hosts() -> None:
    """What fits on no host goes to the emptiest first."""
    inventory = _pool(*(a_host(f"h{n}", 4) for n in range(4)))
    taken(inventory, "h0", 2)
    taken(inventory, "h2", 3)
    assert _placed(inventory, WorkerShape(), 6) == {"h0": 2, "h1": 4}


def test_large_gang_stays_in_one_rack() -> None:
    """Where one rack needs no more hosts than the whole pool, the gang does not leave it."""
    racks = {"h0": "east", "h1": "west", "h2": "west"}
    inventory = _pool(*(a_host(name, 4, rack=rack) for name, rack in racks.items()))
    assert _placed(inventory, WorkerShape(), 8) == {"h1": 4, "h2": 4}


def test_fewer_hosts_go_before_one_rack() -> None:
    """Two hosts in two racks are better than three in one."""
    racks = {"h0": "east", "h1": "west", "h2": "east", "h3": "east"}
    inventory = _pool(*(a_host(name, 4, rack=rack) for name, rack in racks.items()))
    taken(inventory, "h2", 2)
    taken(inventory, "h3", 2)
    assert _placed(inventory, WorkerShape(), 8) == {"h0": 4, "h1": 4}


def test_claim_grows_where_it_is() -> None:
    """Another worker goes to a host that the claim has, though another would be filled by it."""
    inventory = _pool(a_host("h0", 1), a_host("h1", 4))
    taken(inventory, "h1", 1)
    assert _placed(inventory, WorkerShape(), at=[Spot(1, 1)]) == {"h1": 1}


def test_claim_grows_in_its_rack() -> None:
    """Where its hosts are full, it stays in their rack."""
    racks = {"h0": "east", "h1": "west", "h2": "west"}
    inventory = _pool(*(a_host(name, 1, rack=rack) for name, rack in racks.items()))
    taken(inventory, "h2", 1)
    assert _placed(inventory, WorkerShape(), at=[Spot(2, 1)]) == {"h1": 1}


def test_data_is_a_wish_and_no_demand() -> None:
    """A claim goes near its data if it fits there, and elsewhere if not."""
    inventory = _pool(a_host("h0", 2), a_host("h1", 4))
    assert _placed(inventory, WorkerShape(), 2, near=["h1"]) == {"h1": 2}
    assert _placed(inventory, WorkerShape(), 4, near=["h0"]) == {"h1": 4}


def test_spread_takes_a_host_each() -> None:
    """Spread workers go to hosts of their own, and share hosts only when there are no more."""
    inventory = _pool(a_host("h0", 4), a_host("h1", 4))
    assert _placed(inventory, WorkerShape(spread=True), 2) == {"h0": 1, "h1": 1}
    assert sum(_placed(inventory, WorkerShape(spread=True), 3).values()) == 3


def test_too_large_gang_gets_nothing() -> None:
    """A gang that does not fit is not placed in part, and nothing stays held."""
    inventory = _pool(a_host("h0", 4, cpu=8 * CORE), a_host("h1", 4, cpu=8 * CORE))
    assert not spots_for(inventory, WorkerShape(cpu=4 * CORE), 5)
    assert inventory.cpu == [8 * CORE, 8 * CORE]
    assert inventory.free_thousandths() == 8000


# Workers with several devices, and constraints


def test_devices_of_a_worker_are_on_one_host() -> None:
    """Two workers of three devices do not fit on hosts of four and two."""
    inventory = _pool(a_host("h0", 4), a_host("h1", 2))
    assert not spots_for(inventory, WorkerShape(devices=3), 2)
    assert _placed(inventory, WorkerShape(devices=2), 3) == {"h0": 2, "h1": 1}


def test_devices_of_a_worker_share_an_island() -> None:
    """Each worker of a gang gets devices linked to each other, not just neighbours by number."""
    devices = some_devices("h0", 4)
    linked = tuple(device._replace(island=n % 2) for n, device in enumerate(devices))
    inventory = _pool(a_host("h0", linked))
    spots = spots_for(inventory, WorkerShape(devices=2), 2)
    assert [spot.devices for spot in spots] == [0b0101, 0b1010]


def test_model_memory_and_labels_bind() -> None:
    """A worker goes only to devices and hosts as it asks for."""
    inventory = _pool(
        a_host("h0", 1, model="NVIDIA T4"),
        a_host("h1", some_devices("h1", 1, memory_gib=40)),
        a_host("h2", 1, labels=frozenset({"fast"})),
    )
    assert _placed(inventory, WorkerShape(model="t4")) == {"h0": 1}
    assert _placed(inventory, WorkerShape(model="a100", device_memory_bytes=41 * GIB)) == {"h2": 1}
    assert _placed(inventory, WorkerShape(labels=frozenset({"fast"}))) == {"h2": 1}
    assert not spots_for(inventory, WorkerShape(labels=frozenset({"slow"})))


def test_mig_instances_are_their_own_kind() -> None:
    """A host with whole devices and MIG instances gives each to whom it fits."""
    slices = some_devices("m", 2, model="A100 MIG 1g.10gb", memory_gib=10)
    inventory = _pool(a_host("h0", (*some_devices("h0", 2), *slices)))
    assert len(inventory.bays_of(0)) == 2
    (spot,) = spots_for(inventory, WorkerShape(model="mig 1g.10gb"))
    assert inventory.named(spot).devices == ("m-0",)
    assert not spots_for(inventory, WorkerShape(device_memory_bytes=20 * GIB), 3)


def test_what_is_out_of_order_is_left_alone() -> None:
    """Draining hosts, and devices that may not be leased, are not for anybody."""
    out = tuple(device._replace(may_be_leased=False) for device in some_devices("h1", 2))
    inventory = _pool(a_host("h0", 2, takes_more=False), a_host("h1", out))
    assert not spots_for(inventory, WorkerShape())
    assert not spots_for(inventory, a_part(500))


def test_barred_and_avoided_hosts_are_left_alone() -> None:
    """A claim is not sent where it failed or cannot run."""
    inventory = _pool(a_host("h0", 1), a_host("h1", 1), a_host("h2", 2))
    shape = WorkerShape(avoid=frozenset({HostId("h0")}), barred=frozenset({HostId("h1")}))
    assert _placed(inventory, shape) == {"h2": 1}
    assert _placed(inventory, shape._replace(cpu=CORE)) == {"h2": 1}


# Cores and memory


def test_gang_with_cores_takes_fewest_hosts() -> None:
    """Cores and memory limit how many workers a host holds; as few hosts as can be are taken."""
    hosts = [a_host(f"h{n}", 8, cpu=cores * CORE) for n, cores in enumerate((8, 16, 32))]
    assert _placed(_pool(*hosts), WorkerShape(cpu=4 * CORE), 8) == {"h2": 8}
    assert _placed(_pool(*hosts), WorkerShape(cpu=4 * CORE), 10) == {"h0": 2, "h2": 8}


def test_memory_of_the_host_binds() -> None:
    """A worker goes where its memory is, whatever devices are free elsewhere."""
    inventory = _pool(a_host("h0", 1, memory_bytes=8 * GIB), a_host("h1", 8, memory_bytes=64 * GIB))
    assert _placed(inventory, WorkerShape(memory_bytes=16 * GIB)) == {"h1": 1}


def test_worker_without_devices_keeps_off_devices() -> None:
    """It takes cores where no device needs them."""
    inventory = _pool(a_host("h0", 2, cpu=8 * CORE), a_host("h1", 0, cpu=8 * CORE))
    inventory.expect(workload_of([(WorkerShape(cpu=4 * CORE), 8)]))
    assert _placed(inventory, WorkerShape(devices=0, cpu=2 * CORE), 4) == {"h1": 4}


def test_cores_of_free_devices_are_spared() -> None:
    """Cores are taken where they strand no device, not just where least devices are left."""
    inventory = _pool(a_host("h0", 2, cpu=8 * CORE), a_host("h1", 4, cpu=32 * CORE))
    inventory.expect(workload_of([(WorkerShape(cpu=4 * CORE), 100)]))
    assert _placed(inventory, WorkerShape(cpu=6 * CORE)) == {"h1": 1}


# Parts of devices


def test_parts_share_a_device() -> None:
    """Two halves go to one device, so that the other one stays whole."""
    inventory = _pool(a_host("h0", 2))
    first, second = spots_for(inventory, a_part(500), 2, sharer="ann")
    assert first == second
    assert inventory.free_thousandths() == 2000


def test_users_share_no_device_unless_told() -> None:
    """A part goes to a device that only the same people share."""
    inventory = _pool(a_host("h0", 2))
    shared(inventory, "h0", 500, sharer="bob")
    assert spots_for(inventory, a_part(500), sharer="ann") == (Spot(0, 0b10, 500),)
    assert spots_for(inventory, a_part(500), sharer="bob") == (Spot(0, 0b01, 500),)


def test_tightest_part_is_filled() -> None:
    """Of several devices that are shared already, the one with least left is taken."""
    inventory = _pool(a_host("h0", 1), a_host("h1", 1))
    shared(inventory, "h0", 300, sharer="ann")
    shared(inventory, "h1", 600, sharer="ann")
    assert _placed(inventory, a_part(300), sharer="ann") == {"h1": 1}


def test_part_opens_a_device_on_a_fuller_host() -> None:
    """A whole device is split where fewest are left whole."""
    inventory = _pool(a_host("h0", 4), a_host("h1", 4))
    taken(inventory, "h1", 3)
    assert _placed(inventory, a_part(500), sharer="ann") == {"h1": 1}


def test_part_leaves_what_the_next_one_needs() -> None:
    """Where all may share, a rest that nobody could use is filled before a useful one."""
    inventory = _pool(a_host("h0", 1), a_host("h1", 1))
    shared(inventory, "h0", 300)
    shared(inventory, "h1", 500)
    inventory.expect(workload_of([(a_part(500), 100), (a_part(200), 1)]))
    assert _placed(inventory, a_part(200)) == {"h0": 1}


def test_part_needs_cores_beside_its_device() -> None:
    """A device with a part left is of no use where the host has no cores left."""
    inventory = _pool(a_host("h0", 1, cpu=4 * CORE), a_host("h1", 1, cpu=4 * CORE))
    shape = a_part(500, cpu=4 * CORE)
    inventory.take(shape, Spot(0, 1, 500), "ann")
    assert _placed(inventory, shape, sharer="ann") == {"h1": 1}


def test_gang_of_parts_stays_together() -> None:
    """The parts of one claim go to one host as far as they fit there."""
    inventory = _pool(*(a_host(f"h{n}", 2) for n in range(3)))
    assert _placed(inventory, a_part(600), 2, sharer="ann") == {"h0": 2}
