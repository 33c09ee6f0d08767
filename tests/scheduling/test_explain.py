"""What a claim is told about the devices of the pool."""

import pytest

from jupyter_gpupool.scheduling.explain import prospects, prospects_in_words
from jupyter_gpupool.scheduling.passes import plan
from jupyter_gpupool.scheduling.snapshot import Obstacle, Snapshot, Terms

ANY = Terms("", 0)


@pytest.mark.parametrize(
    ("obstacles", "told"),
    [
        ([Obstacle.ELSEWHERE], "1 held by another pool on the host"),
        ([Obstacle.FOREIGN] * 2, "2 in use outside the pool"),
        (
            [Obstacle.QUARANTINED, Obstacle.ELSEWHERE],
            "1 held by another pool on the host, 1 quarantined",
        ),
    ],
)
def test_who_waits_reads_what_is_out_of_everybodys_hands(obstacles, told, a_host, a_want):
    """Waiting for one's turn does not help against another pool: the reason says so."""
    host = a_host("h", 2, free=0, obstacles=obstacles)
    [wait] = plan(Snapshot(hosts=(host,), wants=(a_want("c", 1),))).waits
    assert wait.reason == f"Waiting for 1 of 1 device; {told}."


def test_devices_that_others_lease_are_no_news(a_host, a_want):
    """That is what waiting means."""
    host = a_host("h", 1, free=0, obstacles=[Obstacle.LEASED])
    [wait] = plan(Snapshot(hosts=(host,), wants=(a_want("c", 1),))).waits
    assert wait.reason == "Waiting for 1 of 1 device."


def test_only_devices_that_would_do_are_counted(a_host, a_want):
    """A quarantined H100 is nothing to somebody who wants an A100."""
    hosts = (
        a_host("h", 2, free=0, obstacles=[Obstacle.LEASED] * 2),
        a_host("x", 1, free=0, model="NVIDIA H100", obstacles=[Obstacle.QUARANTINED]),
    )
    [wait] = plan(Snapshot(hosts=hosts, wants=(a_want("c", 1, model="a100"),))).waits
    assert wait.reason == "Waiting for 1 of 1 a100 device."
    assert prospects(Terms("a100", 0), hosts).hindered == {Obstacle.LEASED: 2}


def test_every_device_is_counted_once(a_host):
    """Free, leased, odd: together they are all."""
    obstacles = [Obstacle.LEASED] * 3 + [Obstacle.ELSEWHERE]
    seen = prospects(ANY, [a_host("h", 6, free=2, obstacles=obstacles)])
    assert (seen.devices, seen.free, sum(seen.hindered.values())) == (6, 2, 4)
    assert prospects_in_words(seen, own=1) == (
        "6 devices of the pool would do: 1 its own, 2 free, 2 held by other claims,"
        " 1 held by another pool on the host."
    )


def test_terms_that_nothing_meets_are_told_what_there_is(a_host):
    """So that a misspelt model is seen at once."""
    hosts = [a_host("h", 4), a_host("x", 1, model="NVIDIA H100", memory_bytes=80 * 2**30)]
    assert prospects_in_words(prospects(Terms("a1000", 0), hosts)) == (
        "No device of the pool would do; it has 4 × NVIDIA A100 with 40 GiB,"
        " 1 × NVIDIA H100 with 80 GiB."
    )


def test_a_pool_without_devices_says_so():
    """The first thing to look at is whether any host has joined."""
    told = prospects_in_words(prospects(ANY, []))
    assert told == "No device of the pool would do; it has none at all."


def test_many_kinds_of_device_are_not_all_listed(a_host):
    """A sentence stays one."""
    hosts = [a_host(f"h{n}", 1, model=f"Model {n}") for n in range(9)]
    assert prospects_in_words(prospects(Terms("none", 0), hosts)).endswith("and 4 more kinds.")
