"""Pools for the tests of least attained service: small hosts, claims with a past, three queues."""

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.pool.rules import Rules, SurplusOrder
from jupyter_gpupool.scheduling.amounts import DEVICES, NO_LIMIT
from jupyter_gpupool.scheduling.decisions import Decisions, TakeHow
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, link
from jupyter_gpupool.scheduling.shape import DeviceView, HeldWorker, HostShape, WorkerShape

RULES = Rules(
    surplus_order=SurplusOrder.LEAST_ATTAINED_SERVICE, levels=(100.0, 1_000.0), least_stint_s=50.0
)
NOW_S = 10_000.0


def a_host(name: str, devices: int = 4) -> HostShape:
    """A host with devices named after it, `h-0` and so on."""
    views = (DeviceView(DeviceUuid(f"{name}-{n}"), "a100", 2**35) for n in range(devices))
    return HostShape(id=HostId(name), devices=tuple(views))


def a_claim(name, *, queue="vision", workers=1, most=None, each=1, on=(), **terms) -> ClaimView:
    """A claim of workers with `each` devices; `on` names the devices it holds, worker by worker."""
    held = tuple(_worker(worker) for worker in on)
    past = {"started_s": NOW_S - 1_000} if held else {}
    return ClaimView(
        id=ClaimId(name),
        owner=UserName("ann"),
        queue=queue,
        minimum=workers,
        maximum=workers if most is None else most,
        worker=WorkerShape(devices=each),
        held=held,
        **(past | terms),
    )


def _worker(devices: str) -> HeldWorker:
    host = devices.partition("-")[0]
    return HeldWorker(HostId(host), tuple(DeviceUuid(uuid) for uuid in devices.split()))


def a_tree(limit: int | None = None, **guarantees: int) -> QueueTree:
    """The queues speech, text and vision with these guarantees, in devices; one limit for each."""
    most = NO_LIMIT if limit is None else limit * 1000
    names = ("speech", "text", "vision")
    queues = (
        Queue(name=name, guarantee=(guarantees.get(name, 0) * 1000,), limit=(most,))
        for name in names
    )
    return link((DEVICES,), queues)


def a_view(*claims: ClaimView, hosts=None, tree=None, rules=RULES) -> PoolView:
    """These claims on one host of four devices, unless told otherwise."""
    return PoolView(
        now_s=NOW_S,
        tree=tree or a_tree(),
        hosts=tuple(hosts or [a_host("h")]),
        claims=claims,
        rules=rules,
    )


def served(decided: Decisions) -> list[str]:
    """Who gets something, now or as soon as it is freed."""
    return [given.claim_id for given in (*decided.grants, *decided.promises)]


def stopped(decided: Decisions) -> list[str]:
    """Who has to hibernate."""
    return [take.claim_id for take in decided.takes if take.how is TakeHow.HIBERNATE]
