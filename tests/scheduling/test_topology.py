"""Devices of one worker are near each other, and those left over too."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.pool.ids import DeviceUuid
from jupyter_gpupool.scheduling.bits import bits
from jupyter_gpupool.scheduling.shape import DeviceView
from jupyter_gpupool.scheduling.topology import nearest


def _devices(
    islands: Sequence[int], switches: Sequence[int] = (), nodes: Sequence[int] = ()
) -> list[DeviceView]:
    return [
        DeviceView(
            DeviceUuid(f"g{n}"),
            "A100",
            80 << 30,
            island=island,
            switch=switches[n] if switches else 0,
            numa=nodes[n] if nodes else 0,
        )
        for n, island in enumerate(islands)
    ]


def _chosen(devices: Sequence[DeviceView], count: int, free: Sequence[int] | None = None) -> list:
    positions = range(len(devices)) if free is None else free
    return list(bits(nearest(devices, sum(1 << p for p in positions), count)))


def test_pair_comes_from_one_island() -> None:
    """Devices linked by NVLink go together, wherever they stand in the host's list."""
    assert _chosen(_devices([0, 1, 2, 1]), 2) == [1, 3]


def test_switch_decides_where_no_island_does() -> None:
    """Without NVLink, devices behind one PCIe switch go together."""
    assert _chosen(_devices([0, 1, 2, 3], switches=[0, 1, 0, 1]), 2, [0, 1, 3]) == [1, 3]


def test_numa_node_decides_last() -> None:
    """Without a common switch, devices of one NUMA node go together."""
    alone = _devices([0, 1, 2, 3], switches=[0, 1, 2, 3], nodes=[0, 1, 1, 0])
    assert _chosen(alone, 2, [0, 1, 2]) == [1, 2]


def test_island_goes_before_switch() -> None:
    """NVLink is closer than a switch, even where it crosses one."""
    assert _chosen(_devices([0, 1, 1, 2], switches=[0, 0, 1, 1]), 2) == [1, 2]


def test_tightest_island_is_taken() -> None:
    """The smaller rest of an island is used up, so that the larger one stays whole."""
    assert _chosen(_devices([0, 0, 0, 0, 1, 1, 1, 1]), 2, [0, 1, 2, 3, 6, 7]) == [6, 7]


def test_single_device_leaves_pairs_whole() -> None:
    """A single device comes from where it has no neighbour left."""
    assert _chosen(_devices([0, 0, 1, 1]), 1, [0, 1, 3]) == [3]


def test_larger_count_takes_whole_island_first() -> None:
    """Five devices of two islands are all of the larger one, and one more."""
    assert _chosen(_devices([0, 0, 0, 0, 1, 1, 1, 1]), 5, [0, 1, 2, 4, 5, 6, 7]) == [0, 4, 5, 6, 7]


def test_islands_stay_whole_within_a_node() -> None:
    """Where a NUMA node has enough but no island has, whole islands of that node are taken."""
    pairs = _devices([0, 0, 1, 1, 2, 2, 3, 3], nodes=[0, 0, 0, 0, 1, 1, 1, 1])
    assert _chosen(pairs, 3, [1, 2, 3, 4, 5, 6]) == [1, 2, 3]


@given(
    labels=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=10),
    free=st.integers(0, 1023),
    count=st.integers(0, 10),
)
def test_choice_is_of_free_devices_alone(
    labels: list[tuple[int, int, int]], free: int, count: int
) -> None:
    """So many as asked are chosen, and only free ones; all of them if there are fewer."""
    islands, switches, nodes = zip(*labels, strict=True)
    free &= (1 << len(labels)) - 1
    chosen = nearest(_devices(islands, switches, nodes), free, count)
    assert chosen & ~free == 0
    assert chosen.bit_count() == min(count, free.bit_count())
