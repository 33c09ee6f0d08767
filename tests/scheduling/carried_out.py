"""Plans carried out step by step: what is being freed, what then is free, and where it ends."""

from collections.abc import Iterator
from dataclasses import replace

from applied import applied, holding, released, without_what_goes

from jupyter_gpupool.pool.ids import DeviceUuid
from jupyter_gpupool.scheduling.decisions import Decisions
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, Obstacle


def begun(view: PoolView, decided: Decisions) -> PoolView:
    """The pool right after a plan: what was taken is being freed, for whom it is promised."""
    held = without_what_goes(view, decided)
    promised = {claim.id: list(claim.promised) for claim in view.claims}
    for grant in decided.grants:
        promised[grant.claim_id].clear()
        held[grant.claim_id] += grant.workers
    for move in decided.moves:
        promised[move.claim_id] += move.to
    for promise in decided.promises:
        promised[promise.claim_id] += promise.workers
    ended = released(decided)
    claims = tuple(
        replace(holding(view, claim, held[claim.id]), promised=tuple(promised[claim.id]))
        for claim in view.claims
        if claim.id not in ended
    )
    gone = (worker for part in (*decided.takes, *decided.moves) for worker in part.workers)
    going = {uuid for worker in gone for uuid in worker.devices}
    return replace(view, claims=claims, hosts=tuple(_freeing(h, going) for h in view.hosts))


def freed(view: PoolView) -> PoolView:
    """The pool once all that was being freed is free."""
    return replace(view, hosts=tuple(map(_freed, view.hosts)))


def passes(view: PoolView, most: int = 40) -> Iterator[tuple[PoolView, Decisions]]:
    """Plan and carry out until nothing changes: each pool with what is decided there.

    Time stands still, so that nothing but the plans themselves changes the pool.

    Raises:
        AssertionError: It does not come to rest.
    """
    for _ in range(most):
        decided = plan(view)
        yield view, decided
        if decided.changes_nothing and not decided.unfinished:
            return
        view = applied(view, decided, takes_s=0.0)
    raise AssertionError("the pool does not come to rest")


def at_rest(view: PoolView) -> tuple[PoolView, Decisions]:
    """The pool once planning changes nothing any more, and what is said of those who wait."""
    *_, last = passes(view)
    return last


def _freeing(host: HostShape, going: set[DeviceUuid]) -> HostShape:
    return host._replace(devices=tuple(_shut(d) if d.uuid in going else d for d in host.devices))


def _shut(device: DeviceView) -> DeviceView:
    # One that is out of order stays so.
    if not device.may_be_leased:
        return device
    return device._replace(may_be_leased=False, obstacle=Obstacle.FREEING)


def _freed(host: HostShape) -> HostShape:
    return host._replace(
        devices=tuple(
            device._replace(may_be_leased=True, obstacle=None)
            if device.obstacle is Obstacle.FREEING
            else device
            for device in host.devices
        )
    )
