"""`%gpupool claim` and `attach`: a cluster and a client, bound to variables. Called by `commands`.

Loads Dask.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

from collections.abc import Mapping, Sequence
from typing import Any

from distributed import Client

from jupyter_gpupool.notebook.claim import attach, claim
from jupyter_gpupool.notebook.cluster import ClaimCluster
from jupyter_gpupool.notebook.terms import Gpus
from jupyter_gpupool.pool.units import plural

from .answer import Answer
from .holding import Held


def claim_and_bind(
    held: Held,
    gpus: Gpus,
    timeout: str | None,
    names: Sequence[str],
    terms: Mapping[str, Any],
) -> Answer:
    """Claim devices, and bind their cluster.

    Raises:
        PoolError: As `claim`.
    """
    said: Any = {name: value for name, value in terms.items() if value not in (None, "")}
    return _bound(held, claim(gpus, timeout=timeout, **said), names)


def attach_and_bind(held: Held, name: str, names: Sequence[str]) -> Answer:
    """Attach to a claim, unless this notebook holds it already, and bind its cluster.

    Raises:
        PoolError: As `attach`.
    """
    return _bound(held, held.named(name) or attach(name), names)


def client_of(held: Held, cluster: ClaimCluster) -> Client:
    """A client of a cluster, the one it has or a new one; it stays open as long as the cluster."""
    client = _known_client(cluster) or Client(cluster)
    held.keep_client(cluster, client)
    return client


def _known_client(cluster: ClaimCluster) -> Client | None:
    known: Sequence[Any] = tuple(Client._instances)  # noqa: SLF001 - there is no other list of them
    fit = (client for client in known if client.cluster is cluster and not client.asynchronous)
    return next((client for client in fit if client.status == "running"), None)


def _bound(held: Held, cluster: ClaimCluster, names: Sequence[str]) -> Answer:
    try:
        client = client_of(held, cluster)
    except BaseException:
        cluster.close()
        raise
    held.bind(names, cluster, client)
    return Answer(value=cluster, said=_said(cluster, names))


def _said(cluster: ClaimCluster, names: Sequence[str]) -> str:
    # That it runs has been said already where it was waited for.
    has = plural(len(cluster.requested), "worker")
    roles = zip(("cluster", "client"), names, strict=False)
    bound = ", ".join(f"its {role} is {name}" for role, name in roles)
    return f"Claim {cluster.name} has {has}; {bound}."
