"""Builders for the tests of simulation: arrivals, and a pool of small hosts."""

from collections.abc import Callable

import pytest

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.pool.rules import Rules, SurplusOrder
from jupyter_gpupool.scheduling.amounts import DEVICES, NO_LIMIT
from jupyter_gpupool.scheduling.pool_view import ClaimView
from jupyter_gpupool.scheduling.queues import Queue, link
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, WorkerShape
from jupyter_gpupool.simulation.made_anew import MadeAnew
from jupyter_gpupool.simulation.scheduler import KeptBooks
from jupyter_gpupool.simulation.simulate import Arrival

_RULES = Rules(
    surplus_order=SurplusOrder.LEAST_ATTAINED_SERVICE, levels=(100.0, 400.0), least_stint_s=0.0
)


@pytest.fixture(scope="session")
def an_arrival() -> Callable[..., Arrival]:
    """Builds a claim of workers with `each` devices that comes `at_s` and works for `for_s`."""

    def build(name, at_s, for_s, *, queue="text", workers=1, most=None, each=1, **terms):
        claim = ClaimView(
            id=ClaimId(name),
            owner=UserName("ann"),
            queue=queue,
            since_s=float(at_s),
            minimum=workers,
            maximum=workers if most is None else most,
            worker=WorkerShape(devices=each),
            **terms,
        )
        return Arrival(claim=claim, duration_s=float(for_s))

    return build


@pytest.fixture(scope="session")
def a_scheduler() -> Callable[..., KeptBooks | MadeAnew]:
    """Builds the scheduling of a pool of `hosts` with `devices` each; guarantees are in devices."""

    def build(kind=KeptBooks, *, hosts=1, devices=1, rules=_RULES, **guarantees):
        names = sorted({"text", "vision", *guarantees})
        queues = [
            Queue(name=name, guarantee=(guarantees.get(name, 0) * 1000,), limit=(NO_LIMIT,))
            for name in names
        ]
        shapes = [_host(f"h{number}", devices) for number in range(hosts)]
        return kind(tree=link((DEVICES,), queues), hosts=shapes, rules=rules)

    return build


def _host(name: str, devices: int) -> HostShape:
    views = (DeviceView(DeviceUuid(f"{name}-{n}"), "a100", 2**35) for n in range(devices))
    return HostShape(id=HostId(name), devices=tuple(views))
