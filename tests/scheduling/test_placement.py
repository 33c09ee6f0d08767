"""Which devices a claim gets: gangs whole, fewest hosts, best fit, its terms kept."""

import pytest

from jupyter_gpupool.scheduling.passes import plan
from jupyter_gpupool.scheduling.placement import place
from jupyter_gpupool.scheduling.snapshot import Snapshot


@pytest.fixture
def hosts_of(a_host, a_want):
    """Places a want on free hosts of these sizes and counts its devices by host."""

    def place_on(sizes, want):
        free = {name: a_host(name, size).free for name, size in sizes.items()}
        placed = [p.host_id for p in place(want, free)]
        return {name: placed.count(name) for name in sizes if name in placed}

    return place_on


@pytest.mark.parametrize(
    ("sizes", "wanted", "expected"),
    [
        ({"a": 4, "b": 2}, 2, {"b": 2}),
        ({"a": 4, "b": 3}, 2, {"b": 2}),
        ({"a": 2, "b": 2}, 2, {"a": 2}),
        ({"a": 1, "b": 3, "c": 2}, 5, {"b": 3, "c": 2}),
        ({"a": 1, "b": 3, "c": 2}, 4, {"a": 1, "b": 3}),
        ({"a": 1, "b": 1, "c": 1}, 3, {"a": 1, "b": 1, "c": 1}),
    ],
    ids=[
        "the exact fit leaves the large host whole",
        "the smallest gap that fits",
        "ties go to the first host",
        "the fullest first when none fits alone",
        "the rest takes the smallest gap",
        "spread only when it must be",
    ],
)
def test_a_gang_is_placed_on_the_fewest_hosts(sizes, wanted, expected, hosts_of, a_want):
    """As few hosts as can be; among those, the choice that leaves the most room for others."""
    assert hosts_of(sizes, a_want("c", wanted)) == expected


def test_a_gang_that_is_short_gets_nothing(hosts_of, a_want):
    """Half a gang would only block devices for others."""
    assert hosts_of({"a": 2, "b": 1}, a_want("c", 4)) == {}


def test_an_elastic_claim_takes_what_there_is(hosts_of, a_want):
    """Between its bounds it takes as much as is free."""
    assert hosts_of({"a": 2, "b": 1}, a_want("c", 1, 8)) == {"a": 2, "b": 1}


def test_a_claim_never_gets_more_than_its_maximum(hosts_of, a_want):
    """A large pool does not make a small claim large."""
    assert hosts_of({"a": 8}, a_want("c", 1, 3)) == {"a": 3}


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({"model": "h100"}, ["big-0"]),
        ({"model": "nvidia"}, ["small-0"]),
        ({"gpu_memory_bytes": 60 * 2**30}, ["big-0"]),
        ({"gpu_memory_bytes": 80 * 2**30}, ["big-0"]),
        ({"model": "h200"}, []),
        ({"model": "a100", "gpu_memory_bytes": 60 * 2**30}, []),
    ],
    ids=str,
)
def test_only_devices_that_fit_the_terms_are_taken(terms, expected, a_host, a_want):
    """Model by substring in any case, memory at least; both together."""
    hosts = (
        a_host("big", 2, model="NVIDIA H100", memory_bytes=80 * 2**30),
        a_host("small", 1, model="NVIDIA A100"),
    )
    placed = place(a_want("c", 1, **terms), {host.id: host.free for host in hosts})
    assert [p.device for p in placed] == expected


def test_schedulers_go_to_the_least_burdened_durable_host(a_host, a_want):
    """Hosts that may go away hold no scheduler while a durable one is there."""
    hosts = (
        a_host("gpu", 2),
        a_host("calm", 0, durable=True, schedulers=1),
        a_host("busy", 0, durable=True, schedulers=2),
    )
    wants = tuple(a_want(name, 1, after_s=n) for n, name in enumerate(("one", "two")))
    made = plan(Snapshot(hosts=hosts, wants=wants))
    assert [grant.scheduler_host for grant in made.grants] == ["calm", "busy"]


def test_without_a_durable_host_the_scheduler_is_with_its_workers(a_host, a_want):
    """A scheduler beside its first worker is nearest."""
    made = plan(Snapshot(hosts=(a_host("a", 1), a_host("b", 2)), wants=(a_want("c", 2),)))
    assert [grant.scheduler_host for grant in made.grants] == ["b"]


def test_a_running_claim_keeps_its_scheduler(a_host, a_want):
    """Growing never moves a scheduler."""
    want = a_want("c", 0, 1, scheduler_host="b")
    made = plan(Snapshot(hosts=(a_host("a", 1, durable=True), a_host("b", 0)), wants=(want,)))
    assert [grant.scheduler_host for grant in made.grants] == ["b"]


def test_a_host_where_it_failed_is_left_to_others(a_host, a_want, granted):
    """However well it fits: one broken host must not fail every claim."""
    hosts = (a_host("bad", 1), a_host("good", 8))
    made = plan(Snapshot(hosts=hosts, wants=(a_want("c", 1, avoid=frozenset({"bad"})),)))
    assert granted(made) == {"c": ["good-0"]}


def test_a_claim_waits_for_a_host_where_it_did_not_fail(a_host, a_want):
    """As long as one could serve it, free or not."""
    hosts = (a_host("bad", 1), a_host("good", 8, free=0))
    made = plan(Snapshot(hosts=hosts, wants=(a_want("c", 1, avoid=frozenset({"bad"})),)))
    assert made.grants == ()


def test_a_host_where_it_failed_is_better_than_none(a_host, a_want, granted):
    """The fault may have been the claim's own."""
    want = a_want("c", 1, avoid=frozenset({"bad"}))
    assert granted(plan(Snapshot(hosts=(a_host("bad", 1),), wants=(want,)))) == {"c": ["bad-0"]}


def test_a_host_that_cannot_start_gets_nothing(a_host, a_want):
    """Neither workers nor schedulers; its devices still count as the pool's."""
    broken = a_host("broken", 1, durable=True, can_start=False)
    made = plan(Snapshot(hosts=(broken,), wants=(a_want("c", 1),)))
    assert (made.grants, made.waits[0].never) == ((), False)


def test_a_scheduler_goes_where_no_start_failed(a_host, a_want):
    """A broken durable host must not fail every claim either."""
    hosts = (a_host("gpu", 1), a_host("bad", 0, durable=True), a_host("good", 0, durable=True))
    want = a_want("c", 1, avoid=frozenset({"bad"}))
    assert plan(Snapshot(hosts=hosts, wants=(want,))).grants[0].scheduler_host == "good"


def test_a_host_that_is_barred_gets_nothing_even_alone(a_host, a_want):
    """Where a claim cannot run at all it waits, and is told why."""
    want = a_want("c", 1, barred=frozenset({"a"}), barred_why="It has another Python.")
    made = plan(Snapshot(hosts=(a_host("a", 8),), wants=(want,)))
    assert made.grants == ()
    assert "0 joined. It has another Python." in made.waits[0].reason


def test_a_barred_host_is_left_to_others_who_can_use_it(a_host, a_want, granted):
    """A claim that cannot run there keeps nobody from it."""
    wants = (a_want("one", 1, barred=frozenset({"a"})), a_want("two", 1, after_s=1))
    made = plan(Snapshot(hosts=(a_host("a", 1),), wants=wants))
    assert granted(made) == {"two": ["a-0"]}


def test_a_scheduler_keeps_off_a_barred_durable_host(a_host, a_want):
    """It reads what its kernel pickles, as its workers do."""
    hosts = (a_host("gpu", 1), a_host("odd", 0, durable=True))
    want = a_want("c", 1, barred=frozenset({"odd"}))
    assert plan(Snapshot(hosts=hosts, wants=(want,))).grants[0].scheduler_host == "gpu"
