"""What a pool could hold: the numbers behind "never possible"."""

from packing import GIB, a_host, a_part, some_devices, taken

from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.scheduling.counting import Counting, Gang
from jupyter_gpupool.scheduling.inventory import Inventory
from jupyter_gpupool.scheduling.shape import WorkerShape

CORE = 1000


def test_largest_gang_is_of_the_empty_pool() -> None:
    """What is held now does not make a claim impossible."""
    inventory = Inventory([a_host("h0", 8), a_host("h1", 8), a_host("h2", 4, model="T4")])
    taken(inventory, "h0", 8)
    assert Counting(inventory).largest(WorkerShape(model="a100")) == Gang(16, 2)
    assert Counting(inventory).largest(WorkerShape(devices=3)) == Gang(5, 3)
    assert Counting(inventory).largest(WorkerShape(device_memory_bytes=81 * GIB)) == Gang(0, 0)


def test_models_are_listed_as_hosts_call_them() -> None:
    """The most numerous first."""
    devices = (*some_devices("h0", 2), *some_devices("h0-m", 1, model="MIG 1g"))
    counting = Counting(Inventory([a_host("h0", devices), a_host("h1", 4, model="NVIDIA T4")]))
    assert counting.models == ("NVIDIA T4", "A100", "MIG 1g")


def test_cores_and_memory_bound_the_largest_gang() -> None:
    """A host holds no more workers than its cores and its memory serve."""
    hosts = [a_host("h0", 8, cpu=8 * CORE), a_host("h1", 8, memory_bytes=20 * GIB), a_host("h2", 8)]
    counting = Counting(Inventory(hosts))
    assert counting.largest(WorkerShape(cpu=4 * CORE, memory_bytes=5 * GIB)) == Gang(14, 3)
    assert counting.largest(WorkerShape(cpu=9 * CORE)) == Gang(16, 2)


def test_parts_are_counted_by_the_device() -> None:
    """Parts do not span devices: three of 300 thousandths fit on each."""
    assert Counting(Inventory([a_host("h0", 2)])).largest(a_part(300)) == Gang(6, 1)


def test_barred_hosts_cannot_hold_anything() -> None:
    """Hosts on which a claim cannot run at all do not count, those it avoids for now do."""
    counting = Counting(Inventory([a_host("h0", 2), a_host("h1", 2)]))
    assert counting.largest(WorkerShape(barred=frozenset({HostId("h0")}))) == Gang(2, 1)
    assert counting.largest(WorkerShape(avoid=frozenset({HostId("h0")}))) == Gang(4, 2)


def test_free_counts_what_fits_now() -> None:
    """Devices without cores for their worker are not free for it."""
    devices = (*some_devices("h0", 3), *some_devices("h0-m", 2, model="MIG 1g"))
    inventory = Inventory([a_host("h0", devices, cpu=8 * CORE)])
    taken(inventory, "h0", 1, WorkerShape(cpu=4 * CORE))
    assert Counting(inventory).free(WorkerShape(model="a100")) == 2
    assert Counting(inventory).free(WorkerShape(model="a100", cpu=3 * CORE)) == 1
