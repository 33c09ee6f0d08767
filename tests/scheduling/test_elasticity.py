"""What a pool that can grow and shrink should do."""

import pytest

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.scheduling.amounts import DEVICES, NO_LIMIT
from jupyter_gpupool.scheduling.elasticity import (
    HostsWanted,
    Offer,
    hosts_that_may_go,
    hosts_wanted,
)
from jupyter_gpupool.scheduling.ledger import Ledger
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, link
from jupyter_gpupool.scheduling.rounds import decide
from jupyter_gpupool.scheduling.shape import DeviceView, HeldWorker, HostShape, WorkerShape


def a_host(name, devices, model="a100"):
    return HostShape(
        HostId(name),
        tuple(DeviceView(DeviceUuid(f"{name}-{n}"), model, 80 << 30) for n in range(devices)),
    )


def an_offer(name="cloud", devices=8, model="a100", most=10, cost=1.0):
    return Offer(name=name, host=a_host("new", devices, model), most=most, cost=cost)


def a_claim(name, workers, **terms):
    return ClaimView(
        id=ClaimId(name),
        owner=UserName("ada"),
        queue="all",
        minimum=workers,
        maximum=workers,
        **terms,
    )


def after_pass(*claims, hosts=(), limit=NO_LIMIT):
    """The books after a pass, and who waits."""
    queue = Queue(name="all", guarantee=(0,), limit=(limit,))
    tree = link((DEVICES,), [queue])
    ledger = Ledger(PoolView(now_s=1000.0, tree=tree, hosts=hosts, claims=claims))
    ledger.set_shares({"all": (NO_LIMIT,)})
    return ledger, decide(ledger).waits


def test_waiting_gangs_share_new_hosts():
    """Three gangs of four need two hosts of eight."""
    ledger, waits = after_pass(*(a_claim(name, 4) for name in "abc"))
    found = hosts_wanted(ledger, waits, [an_offer()])
    assert found == (HostsWanted(offer="cloud", count=2, claims=("a", "b", "c")),)


def test_cheapest_offer_that_fits_is_wanted():
    """Dear hosts are for those whom cheap ones do not suit."""
    ledger, waits = after_pass(
        a_claim("any", 2), a_claim("picky", 1, worker=WorkerShape(model="h100"))
    )
    offers = [an_offer("dear", model="h100", cost=5), an_offer("cheap", cost=1)]
    found = {wanted.offer: wanted.claims for wanted in hosts_wanted(ledger, waits, offers)}
    assert found == {"cheap": ("any",), "dear": ("picky",)}


def test_limits_are_not_outgrown():
    """Nobody is brought hosts that his queue may not hold."""
    ledger, waits = after_pass(a_claim("a", 4), a_claim("b", 4), limit=4000)
    assert hosts_wanted(ledger, waits, [an_offer()])[0].claims == ("a",)


def test_offer_is_not_exceeded():
    """A gang beyond all offered hosts brings none of them."""
    ledger, waits = after_pass(a_claim("huge", 100))
    assert hosts_wanted(ledger, waits, [an_offer(most=2)]) == ()


@pytest.mark.parametrize(("since_s", "goes"), [(0.0, True), (950.0, False)])
def test_host_goes_once_empty_for_its_keep_time(since_s, goes):
    """A host that has just become empty stays for the next claim."""
    ledger, waits = after_pass(hosts=(a_host("h", 2),))
    found = hosts_that_may_go(ledger, waits, {HostId("h"): since_s}, keep_s=100)
    assert found == (("h",) if goes else ())


def test_held_and_scheduler_hosts_stay():
    """Whatever the providers believe of how long it has been empty."""
    held = a_claim("a", 1, held=(HeldWorker(HostId("busy"), (DeviceUuid("busy-0"),)),))
    durable = a_host("durable", 0)._replace(schedulers=1)
    ledger, waits = after_pass(held, hosts=(a_host("busy", 1), durable))
    empty = dict.fromkeys((HostId("busy"), HostId("durable")), 0.0)
    assert hosts_that_may_go(ledger, waits, empty, keep_s=1) == ()


def test_mixed_host_stays_for_whom_a_part_of_it_would_do():
    """A gang may count on its A100, whatever else it has."""
    mixed = a_host("h", 1)
    mixed = mixed._replace(devices=(*mixed.devices, *a_host("i", 1, "l40s").devices))
    gang = a_claim("gang", 4, worker=WorkerShape(model="a100"))
    ledger, waits = after_pass(gang, hosts=(mixed,))
    assert hosts_that_may_go(ledger, waits, {HostId("h"): 0.0}, keep_s=1) == ()


def test_host_that_somebody_waits_for_stays():
    """Too small alone, it may be the half of a gang that still comes."""
    ledger, waits = after_pass(a_claim("gang", 4), hosts=(a_host("h", 2),))
    assert hosts_that_may_go(ledger, waits, {HostId("h"): 0.0}, keep_s=1) == ()
