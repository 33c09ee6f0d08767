"""What a claim's owner is told about the devices of the pool."""

import pytest

from jupyter_gpupool.scheduling.prospects import prospects, prospects_in_words
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, Obstacle, WorkerShape

ANY = WorkerShape()
GIB = 2**30


def a_host(name, devices, *, model="NVIDIA A100", memory_bytes=40 * GIB, obstacles=()):
    """A host, of whose devices the last ones have these obstacles."""
    hindered = dict(enumerate(obstacles, start=devices - len(obstacles)))
    views = (
        DeviceView(f"{name}-{n}", model, memory_bytes, obstacle=hindered.get(n))
        for n in range(devices)
    )
    return HostShape(id=name, devices=tuple(views))


def test_only_devices_that_would_do_are_counted():
    """A quarantined H100 is nothing to somebody who wants an A100."""
    sick = a_host("x", 1, model="NVIDIA H100", obstacles=[Obstacle.QUARANTINED])
    seen = prospects(WorkerShape(model="a100"), [a_host("h", 2), sick], {"h-0", "h-1"})
    assert (seen.devices, seen.leased, dict(seen.hindered)) == (2, 2, {})


def test_every_device_is_counted_once():
    """Free, leased, odd: together they are all."""
    host = a_host("h", 6, obstacles=[Obstacle.ELSEWHERE, Obstacle.FREEING])
    # What is being freed under a lease is that lease's still.
    seen = prospects(ANY, [host], {"h-0", "h-1", "h-5"})
    assert (seen.devices, seen.free, seen.leased, dict(seen.hindered)) == (
        6,
        2,
        3,
        {Obstacle.ELSEWHERE: 1},
    )
    assert prospects_in_words(seen, own=1) == (
        "6 devices of the pool would do: 1 its own, 2 free, 2 held by other claims,"
        " 1 held by another pool on the host."
    )


@pytest.mark.parametrize("where", [{"barred": frozenset({"h"})}, {"avoid": frozenset({"h"})}])
def test_hosts_that_a_claim_keeps_off_do_not_count(where):
    """Neither where it cannot run nor where it failed."""
    assert prospects(ANY._replace(**where), [a_host("h", 2)], set()).devices == 0


def test_terms_that_nothing_meets_are_told_what_there_is():
    """So that a misspelt model is seen at once."""
    hosts = [a_host("h", 4), a_host("x", 1, model="NVIDIA H100", memory_bytes=80 * GIB)]
    assert prospects_in_words(prospects(WorkerShape(model="a1000"), hosts, set())) == (
        "No device of the pool would do; it has 4 × NVIDIA A100 with 40 GiB,"
        " 1 × NVIDIA H100 with 80 GiB."
    )


def test_a_pool_without_devices_says_so():
    """The first thing to look at is whether any host has joined."""
    told = prospects_in_words(prospects(ANY, [], set()))
    assert told == "No device of the pool would do; it has none at all."


def test_many_kinds_of_device_are_not_all_listed():
    """A sentence stays one."""
    hosts = [a_host(f"h{n}", 1, model=f"Model {n}") for n in range(9)]
    told = prospects_in_words(prospects(WorkerShape(model="none"), hosts, set()))
    assert told.endswith("and 4 more kinds.")
