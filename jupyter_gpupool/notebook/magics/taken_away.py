"""Why a cell has no worker: its claim hibernates, has shrunk or has ended, or the worker failed.

Called by `places` before a cell runs, and by `remote` when its worker goes.
"""

import asyncio
import contextlib
import shlex
from typing import TYPE_CHECKING

from jupyter_gpupool.notebook.opening import lost
from jupyter_gpupool.pool.claim import OVER, Phase
from jupyter_gpupool.pool.errors import PoolError, Unavailable
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.protocol.api import ClaimView

if TYPE_CHECKING:
    from jupyter_gpupool.notebook.cluster import ClaimCluster

_ASLEEP = (Phase.HIBERNATING, Phase.HIBERNATED)
_TAKEN = (LeasePhase.RETIRING, LeasePhase.ENDING, LeasePhase.ENDED)
_LOOKS_FOR_S = 2.0


def check_awake(cluster: "ClaimCluster") -> None:
    """Refuse a cell for a claim that hibernates: no worker comes by itself.

    Raises:
        Unavailable: If it does; how to wake it is in the hint.
    """
    heard = cluster.view
    if heard is not None and heard.phase in _ASLEEP:
        # It may have been resumed just now, and the event be on its way.
        view = _seen_now(cluster) or heard
        if view.phase in _ASLEEP:
            raise Unavailable(
                f"Claim {view.name} hibernates: it has no worker for the cell.", hint=_wake(view)
            )


def why_ended(cluster: "ClaimCluster", worker: str) -> PoolError:
    """The error for a cell whose worker ended under it."""
    view = _seen_now(cluster)
    ended = f"Worker {worker} ended while it ran the cell; its variables are lost."
    if view is not None and view.phase in OVER:
        return lost(view.name, view.reason)
    if view is not None and view.phase in _ASLEEP:
        return Unavailable(f"Claim {view.name} hibernates. {ended}", hint=_wake(view))
    if view is not None and (reason := _taken(view, worker)):
        return Unavailable(f"{ended} {reason}", hint=f"See: %gpupool explain {_quoted(view)}")
    return Unavailable(ended, hint="See why: %gpupool log")


def _taken(view: ClaimView, worker: str) -> str:
    """Why the claim has this worker no more, "" if it is still its own."""
    leases = {str(lease.id): lease for lease in view.leases}
    if worker not in leases:
        return "It has been taken from its claim."
    return leases[worker].reason if leases[worker].phase in _TAKEN else ""


def _wake(view: ClaimView) -> str:
    return f"Wake it: %gpupool resume {_quoted(view)}"


def _quoted(view: ClaimView) -> str:
    return shlex.quote(view.name)


def _seen_now(cluster: "ClaimCluster") -> ClaimView | None:
    """The claim as the manager has it now; None if that does not answer soon."""
    pool = cluster.pool

    async def look() -> ClaimView:
        async with asyncio.timeout(_LOOKS_FOR_S):
            return await pool.client.claim(cluster.claim_id, patience_s=0)

    with contextlib.suppress(PoolError, TimeoutError):
        return pool.background.run(lambda _say: look())
    return None
