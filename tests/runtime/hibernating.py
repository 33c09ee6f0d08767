"""What the tests of hibernation do to a claim: what its agent would."""

import asyncio

from distributed import Client

from jupyter_gpupool.protocol.keeping import KeepPhase, Wish
from jupyter_gpupool.protocol.launch import Orders, Role

_DEADLINE_S = 90.0
"""A gibibyte on a machine that has much else to do."""


def client_of(claim, state):
    """The claim's client."""
    return Client(state.address, security=claim.security(), asynchronous=True)


def order(host, claim, wish, **orders):
    """Tell the scheduler what to do with the results."""
    host.socket.order(Role.SCHEDULER, claim.claim_id, "", Orders(wish=wish, **orders))


def keeping(host, claim):
    """What the scheduler said of them last."""
    return host.state_of(claim).keeping


async def until_phase(host, claim, *phases):
    """Wait for one of these."""
    await host.until(lambda: keeping(host, claim).phase in phases, _DEADLINE_S)
    return keeping(host, claim)


async def hibernate(host, claim, **holder):
    """Have the claim hibernate."""
    await host.fork_holder(claim, **holder)
    order(host, claim, Wish.HIBERNATED)
    return await until_phase(host, claim, KeepPhase.HIBERNATED, KeepPhase.REFUSED)


async def resume(host, claim, *leases, **worker):
    """Give it workers again."""
    order(host, claim, Wish.AWAKE)
    address = host.state_of(claim).address
    forks = (host.fork_worker(claim, lease, address=address, **worker) for lease in leases)
    await asyncio.gather(*forks)
    return await until_phase(host, claim, KeepPhase.AWAKE)
