"""On which worker of which claim a cell runs. Called by `running_there`.

A notebook's cells stay with one worker of a claim, for their variables are there.
"""

import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_gpupool.notebook.claim import attach
from jupyter_gpupool.notebook.cluster import ClaimCluster
from jupyter_gpupool.pool.errors import Unavailable

from .claiming import client_of
from .holding import Held
from .steering import chosen
from .taken_away import check_awake

_COMES_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.05
_SILENT_FOR_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A worker, and how to talk with it.

    Attributes:
        worker: Its name, which is its lease's id.
        address: Where it listens; another process of the same lease listens elsewhere.
    """

    cluster: ClaimCluster
    client: Any
    worker: str
    address: str

    @property
    def is_there(self) -> bool:
        """Whether the very process is still registered."""
        return _addresses(self.cluster).get(self.worker) == self.address


def place_of(held: Held, on: str | None, worker: str | None) -> Place:
    """The worker that is meant.

    Raises:
        NotFound: If there is no such claim or worker.
        BadRequest: If several claims are held and none is named.
        Unavailable: If the claim hibernates, or has no worker now.
    """
    cluster = _cluster(held, on)
    addresses = _addresses_soon(held, cluster)
    name = _last(held, cluster, addresses) if worker is None else chosen(sorted(addresses), worker)
    held.last_workers[cluster.claim_id] = name, addresses[name]
    return Place(
        cluster=cluster, client=client_of(held, cluster), worker=name, address=addresses[name]
    )


def _cluster(held: Held, on: str | None) -> ClaimCluster:
    if on is None:
        return held.only()
    cluster = held.named(on)
    if cluster is None:
        cluster = attach(on)
        held.keep(cluster)
    return cluster


def _last(held: Held, cluster: ClaimCluster, addresses: Mapping[str, str]) -> str:
    name, address = held.last_workers.get(cluster.claim_id, ("", ""))
    if not name:
        return min(addresses)
    now = name if name in addresses else min(addresses)
    if addresses[now] != address and address not in held.ended_workers:
        lost = "with the variables of earlier cells"
        sys.stderr.write(f"Worker {name} has ended {lost}; this cell runs on {now}.\n")
    return now


def _addresses_soon(held: Held, cluster: ClaimCluster) -> Mapping[str, str]:
    began, told = time.monotonic(), False
    check_awake(cluster)
    while not (found := _addresses(cluster, held.ended_workers)):
        check_awake(cluster)
        waited_s = time.monotonic() - began
        if waited_s > _SILENT_FOR_S and not told:
            told = True
            sys.stderr.write(f"Claim {cluster.name} has no worker yet; the cell waits for one.\n")
        if waited_s > _COMES_WITHIN_S:
            raise Unavailable(
                f"Claim {cluster.name} has no worker now.",
                hint=f"See why: %gpupool explain {cluster.name}",
            )
        time.sleep(_LOOK_EVERY_S)
    return found


def _addresses(cluster: ClaimCluster, ended: Collection[str] = ()) -> Mapping[str, str]:
    workers: Mapping[str, Any] = cluster.scheduler_info["workers"]
    there = tuple(workers.items())
    return {str(worker["name"]): address for address, worker in there if address not in ended}
