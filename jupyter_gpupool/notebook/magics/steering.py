"""Which claim `%gpupool release`, `scale` and their like mean, and giving it back.

Called by `commands`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jupyter_gpupool as gpupool
from jupyter_gpupool.client.pools import current_pool
from jupyter_gpupool.notebook.voice import Voice
from jupyter_gpupool.notebook.which import find, find_used
from jupyter_gpupool.pool.errors import NotFound
from jupyter_gpupool.protocol.api import ClaimView

from .holding import Held

if TYPE_CHECKING:
    from jupyter_gpupool.notebook.cluster import ClaimCluster

_MOST_LISTED = 5


def meant(held: Held, name: str | None) -> str:
    """The claim to ask the pool for; "" leaves it to the pool to find the one that is meant.

    Raises:
        BadRequest: If this notebook holds several and none is named.
    """
    if name is not None:
        return name
    return held.only().claim_id if held.clusters() else ""


def release_claim(held: Held, name: str | None) -> ClaimView:
    """Give back the claim of this name, or the only one of this notebook.

    One that is held here is closed with its clients.

    Raises:
        PoolError: NotFound if this notebook has none and none is named; the message lists others.
    """
    claim = meant(held, name) or _own()
    cluster = held.named(claim)
    return gpupool.release(claim) if cluster is None else _closed(cluster)


def release_all(held: Held) -> Sequence[ClaimView]:
    """Give all claims of this user back, this notebook's first.

    Raises:
        PoolError: What the pool says no to.
    """
    own = [_closed(cluster) for cluster in held.clusters()]
    pool = current_pool()
    others = pool.background.run(lambda _say: pool.client.release_all(), Voice().say)
    return (*own, *others)


def lease_of(claim: str, worker: str) -> str:
    """The process that is meant by a worker's number, from 0, or by its lease's id.

    Raises:
        NotFound: If the claim has no such worker.
    """
    pool = current_pool()
    view = pool.background.run(lambda _say: find(pool.client, claim), Voice().say)
    return chosen(sorted(lease.id for lease in view.leases), worker)


def chosen(names: Sequence[str], worker: str) -> str:
    """The one of these workers that is meant by its number, from 0, or its name.

    Raises:
        NotFound: If there is none.
    """
    if worker in names:
        return worker
    if worker.isdecimal() and int(worker) < len(names):
        return names[int(worker)]
    listed = ", ".join(f"{number} ({name})" for number, name in enumerate(names[:_MOST_LISTED]))
    raise NotFound(f"There is no worker {worker!r}.", hint=f"There are: {listed or 'none yet'}.")


def _closed(cluster: "ClaimCluster") -> ClaimView:
    cluster.release_on_close = True
    cluster.close()
    assert cluster.view is not None, "a claim that is held was requested"
    return cluster.view


def _own() -> str:
    """The only claim that this kernel uses, as the pool knows: after a restart it holds none."""
    pool = current_pool()
    return pool.background.run(lambda _say: find_used(pool.client), Voice().say).id
