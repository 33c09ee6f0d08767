"""The measure of what is of no use, and the costs that are kept by it."""

from hypothesis import given
from hypothesis import strategies as st
from packing import a_part

from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.scheduling.bays import Kind
from jupyter_gpupool.scheduling.fragmentation import BayState, Fragmentation, HostState
from jupyter_gpupool.scheduling.prices import Cost, Prices
from jupyter_gpupool.scheduling.scores import Change, Ranking
from jupyter_gpupool.scheduling.shape import WorkerShape
from jupyter_gpupool.scheduling.workload import TYPICAL, Demand, Workload, workload_of

A100 = Kind("a100", 80, frozenset(), is_open=True, has_devices=True)
T4 = Kind("t4", 16, frozenset(), is_open=True, has_devices=True)


def _unusable(workload: Workload, whole: int, parts: tuple[int, ...] = (), **free: int) -> int:
    state = HostState(free.get("cpu", 9000), free.get("memory", 90), (BayState(0, whole, parts),))
    return Fragmentation(workload, [A100]).unusable(state)


def test_whole_devices_are_of_use_to_whole_workers() -> None:
    """What the expected worker fits on is useful, be it more than it takes."""
    assert _unusable((Demand(WorkerShape(devices=2), 1),), 3) == 0


def test_rests_are_of_no_use_to_whole_workers() -> None:
    """A worker of whole devices cannot use parts, even where it fits."""
    assert _unusable((Demand(WorkerShape(), 3),), 1, (200, 400)) == 3 * 600


def test_too_few_devices_are_of_no_use() -> None:
    """Where the expected worker does not fit, all that is free is of no use."""
    assert _unusable((Demand(WorkerShape(devices=4), 1),), 3, (500,)) == 3500


def test_small_rests_are_of_no_use_to_parts() -> None:
    """Rests smaller than the expected part count, larger ones do not."""
    assert _unusable((Demand(a_part(300), 1),), 0, (100, 200, 300, 800)) == 300


def test_devices_without_cores_are_of_no_use() -> None:
    """Free devices count as useless where cores or memory for their workers lack."""
    demand = (Demand(WorkerShape(cpu=4000, memory_bytes=40), 1),)
    assert _unusable(demand, 2, cpu=4000, memory=40) == 0
    assert _unusable(demand, 2, cpu=3999) == 2000
    assert _unusable(demand, 2, memory=39) == 2000


def test_devices_of_another_kind_are_of_no_use() -> None:
    """A device that an expected worker does not accept is useless to it, by its weight."""
    measure = Fragmentation((Demand(WorkerShape(model="a100"), 2), Demand(WorkerShape(), 1)), [T4])
    assert measure.unusable(HostState(1, 1, (BayState(0, 1, ()),))) == 2000


def test_filling_a_useless_rest_costs_less_than_nothing() -> None:
    """A worker on a rest that no other can use is better than one that splits a device."""
    measure = Fragmentation((Demand(WorkerShape(), 1),), [A100])
    state = HostState(1, 1, (BayState(0, 1, (500,)),))
    assert Prices(measure, a_part(500), shared=True)((state, 0)) == Cost(-500, False, 1, 500)
    assert Prices(measure, a_part(500), shared=False)((state, 0)) == Cost(500, True, 1, 1000)


def test_what_does_not_fit_has_no_cost() -> None:
    """Too few devices, too small rests, too few cores and wrong kinds are no place at all."""
    measure, state = Fragmentation(TYPICAL, [T4]), HostState(1, 1, (BayState(0, 0, (500,)),))
    for shape in (WorkerShape(), a_part(501), a_part(1, cpu=2), a_part(1, model="a100")):
        assert Prices(measure, shape, shared=True)((state, 0)) is None


@given(
    shares=st.lists(st.integers(1, 999), min_size=1, max_size=5),
    whole=st.integers(0, 8),
    parts=st.lists(st.integers(1, 999), max_size=8),
)
def test_no_more_is_useless_than_is_free(shares: list[int], whole: int, parts: list[int]) -> None:
    """The measure lies between nothing and all that is free, times the weight of the workload."""
    workload = workload_of((a_part(share), 1) for share in shares)
    weight = sum(demand.weight for demand in workload)
    amount = _unusable(workload, whole, tuple(sorted(parts)))
    assert 0 <= amount <= weight * (1000 * whole + sum(parts))


# The workload


def test_workload_forgets_where_and_keeps_what() -> None:
    """Claims of one shape count together, wherever each may not run just now."""
    barred = a_part(500, barred=frozenset({HostId("h0")}), spread=True)
    assert workload_of([(barred, 1), (a_part(500), 2)]) == workload_of([(a_part(500), 3)])


def test_workload_does_not_depend_on_order() -> None:
    """The same claims in another order are the same workload."""
    claims = [(a_part(share), 1 + share % 3) for share in range(1, 200)]
    assert workload_of(claims) == workload_of(reversed(claims))


def test_whole_devices_are_always_expected() -> None:
    """Where nobody waits, or only workers without devices, whole devices are worth keeping."""
    assert workload_of([(WorkerShape(devices=0, cpu=1000), 5)]) == TYPICAL


# Rankings


def test_ranking_follows_changes() -> None:
    """After any changes a ranking is as if it were made anew."""
    keys = [(HostState(n, 0, ()), 0) for n in range(6)]
    price = {key: Cost(n % 4, True, 0, 0) if n else None for n, key in enumerate(keys)}
    ranking = Ranking(price.__getitem__, {keys[n]: 1 << n for n in range(5)}, 0)
    ranking.follow([Change(2, keys[2], keys[5]), Change(1, keys[1], keys[0])])
    anew = {keys[0]: 0b11, keys[5]: 0b100, keys[3]: 0b1000, keys[4]: 0b10000}
    assert list(ranking) == list(Ranking(price.__getitem__, anew, 0))
