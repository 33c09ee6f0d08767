"""The claims that this notebook holds, and which of them a command means.

A claim made or attached by a magic is kept until it is released, whatever becomes of the variable
it was bound to. One made in Python is found by the variable that holds it.
"""

# mypy: allow-untyped-calls
# IPython types only some of what it offers.

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jupyter_gpupool.pool.errors import BadRequest, NotFound

if TYPE_CHECKING:
    from distributed import Client
    from IPython.core.interactiveshell import InteractiveShell

    from jupyter_gpupool.notebook.cluster import ClaimCluster

_CLUSTERS = "jupyter_gpupool.notebook.cluster"
_OVER = ("closed", "closing", "failed")
_MOST_LISTED = 5


class Held:
    """What one shell holds."""

    def __init__(self, shell: "InteractiveShell") -> None:
        self.shell = shell
        self._kept: list[ClaimCluster] = []
        self._clients: dict[str, Client] = {}
        self.last_workers: dict[str, tuple[str, str]] = {}
        """By claim: the worker its last cell ran on, and where that listened."""
        self.ended_workers: set[str] = set()
        """Where those listened that we have ended; they may seem to be there for a moment more."""

    def keep(self, cluster: "ClaimCluster") -> None:
        """Keep a claim until it is released or this Python ends."""
        self._kept = [*self._open(self._kept), cluster]

    def keep_client(self, cluster: "ClaimCluster", client: "Client") -> None:
        """Keep a client of a claim: one that nobody refers to would close."""
        open_ones = {claim: one for claim, one in self._clients.items() if one.status == "running"}
        self._clients = {**open_ones, cluster.claim_id: client}

    def bind(self, names: Sequence[str], cluster: "ClaimCluster", client: "Client") -> None:
        """Keep a claim, under these variables of the notebook."""
        self.keep(cluster)
        self.shell.push(dict(zip(names, (cluster, client), strict=False)))

    def clusters(self) -> Sequence["ClaimCluster"]:
        """The claims held now, each once."""
        found = {id(cluster): cluster for cluster in self._open(self._kept)}
        namespace: Mapping[str, Any] = self.shell.user_ns
        found.update({id(value): value for value in self._open(list(namespace.values()))})
        return tuple({cluster.claim_id: cluster for cluster in found.values()}.values())

    def named(self, name: str) -> "ClaimCluster | None":
        """The one of this name or id, if it is held.

        Raises:
            BadRequest: If several have the name.
        """
        found = [one for one in self.clusters() if name in (one.name, one.claim_id)]
        if len(found) > 1:
            ids = ", ".join(cluster.claim_id for cluster in found[:_MOST_LISTED])
            raise BadRequest(
                f"This notebook holds {len(found)} claims named {name!r}.",
                hint=f"Choose by id: {ids}.",
            )
        return found[0] if found else None

    def only(self) -> "ClaimCluster":
        """The only one.

        Raises:
            NotFound: If there is none.
            BadRequest: If there are several.
        """
        clusters = self.clusters()
        if not clusters:
            raise NotFound(
                "This notebook holds no claim.",
                hint="First: %gpupool claim, or %gpupool attach NAME.",
            )
        if len(clusters) > 1:
            named = Counter(str(cluster.name) for cluster in clusters)
            names = ", ".join(
                str(one.name) if named[str(one.name)] == 1 else f"{one.claim_id} ({one.name})"
                for one in clusters[:_MOST_LISTED]
            )
            raise BadRequest(
                f"This notebook holds {len(clusters)} claims: {names}.", hint="Name one of them."
            )
        return clusters[0]

    def _open(self, values: Sequence[object]) -> "list[ClaimCluster]":
        # Dask costs half a second: where nobody has loaded it, nothing is held.
        module: Any = sys.modules.get(_CLUSTERS)
        if module is None:
            return []
        clusters = [value for value in values if isinstance(value, module.ClaimCluster)]
        return [cluster for cluster in clusters if cluster.claim_id and _is_open(cluster)]


def _is_open(cluster: "ClaimCluster") -> bool:
    # An asynchronous one belongs to the loop it is awaited on.
    return not cluster.asynchronous and cluster.status.name not in _OVER
