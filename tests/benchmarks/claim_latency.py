"""How long from `claim` to the first result, against dask-gateway and a cold LocalCUDACluster.

    python tests/benchmarks/claim_latency.py [--json] [--rounds 20] [--peer-rounds 8]

Ours is `claim(n)`, `Client(cluster)`, one task's result, on a warm embedded pool with mutual TLS.
dask-gateway is `new_cluster`, `scale(1)`, one task's result, on its warm server. LocalCUDACluster
is timed in a fresh process from before it is built to one task's result; its imports come on top
and are shown apart. Rounds of all three take turns in one run; medians are compared.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from claim_marks import Round, claim_once
from harness import Figure, Target, finish, median, note, options, ratio, spread, table
from our_pool import Devices, devices, wait_until_free, warm_pool
from peers import gateway, local_cuda

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.pool.errors import PoolError

WORKERS = (1, 2, 4)
_PEERS = Path(__file__).parents[2] / "build" / "peers"


@dataclass(slots=True)
class Times:
    """Everything that was measured, in seconds."""

    ours: dict[int, list[Round]] = field(default_factory=lambda: defaultdict(list))
    gateway: list[dict[str, float]] = field(default_factory=list)
    local: list[dict[str, float]] = field(default_factory=list)
    failures: int = 0
    peer_failures: list[str] = field(default_factory=list)

    def first_results_s(self, workers: int) -> list[float]:
        """Ours, from `claim` to the first result."""
        return [one.first_result_s for one in self.ours[workers]]


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    with devices(max(WORKERS)) as found:
        note(f"Devices: {found.what}.")
        times = measure(found, chosen.rounds, chosen.peer_rounds)
    show(times)
    finish(figures(times), as_json=chosen.json)


def measure(found: Devices, rounds: int, peer_rounds: int) -> Times:
    """Let everybody take turns."""
    times = Times()
    every = max(1, rounds // max(1, peer_rounds))
    with warm_pool(found) as pool, gateway_or_none() as peer:
        for number in range(rounds):
            for workers in WORKERS:
                _ours(times, pool, workers)
            if peer is not None and number % every == 0 and len(times.gateway) < peer_rounds:
                _peer(times, times.gateway, peer.first_result, gateway.PeerFailed)
            if found.environment and number % every == 0 and len(times.local) < peer_rounds:
                _peer(
                    times,
                    times.local,
                    lambda: local_cuda.first_result(found.environment),
                    local_cuda.LocalCudaFailed,
                )
    return times


def _ours(times: Times, pool: Pool, workers: int) -> None:
    try:
        times.ours[workers].append(claim_once(pool, workers))
        wait_until_free(pool)
    except (PoolError, TimeoutError, AssertionError) as error:
        times.failures += 1
        note(f"A round of ours failed: {error}")


def _peer(
    times: Times,
    rounds: list[dict[str, float]],
    one: Callable[[], dict[str, float]],
    failure: type[Exception],
) -> None:
    try:
        rounds.append(one())
    except failure as error:
        times.peer_failures.append(str(error))
        note(str(error))


class _NoPeer:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def gateway_or_none() -> "gateway.GatewayPeer | _NoPeer":
    """The running peer after one round that does not count, or nothing with the reason said."""
    note("Preparing dask-gateway's own environment and server…")
    try:
        peer = gateway.GatewayPeer(gateway.environment(_PEERS))
        peer.first_result()
    except (gateway.PeerMissing, OSError) as missing:
        note(f"Left out: {missing}")
        return _NoPeer()
    except gateway.PeerFailed as failed:
        note(f"{failed}; it is started anew.")
    return peer


def show(times: Times) -> None:
    """Print who took how long, and where our time went."""
    heads = ("claim to first result, ms", "rounds", "median", "fastest", "slowest")
    rows = [
        (f"ours, {n} workers" if n > 1 else "ours, 1 worker", *spread(times.first_results_s(n)))
        for n in WORKERS
    ]
    rows.append(("dask-gateway, 1 worker", *spread(_of(times.gateway, "first_result_s"))))
    rows.append(("  of it new_cluster", *spread(_of(times.gateway, "new_cluster_s"))))
    rows.append(("LocalCUDACluster, cold", *spread(_of(times.local, "first_result_s"))))
    rows.append(("  its imports, on top", *spread(_of(times.local, "imports_s"))))
    table("Who", heads, rows)
    if times.peer_failures:
        note(f"  {len(times.peer_failures)} rounds of peers failed and are not in the medians.")
    _show_marks(times)


def _show_marks(times: Times) -> None:
    names = [name for name, _ in times.ours[1][0].marks] if times.ours[1] else []
    rows = [(name, *(_at(times.ours[workers], name) for workers in WORKERS)) for name in names]
    heads = ("median ms after `claim` was called", *(f"{n}" for n in WORKERS))
    table("Where it goes, by number of workers", heads, rows)


def _at(rounds: Sequence[Round], name: str) -> str:
    at_s = [dict(one.marks)[name] for one in rounds if name in dict(one.marks)]
    middle = median(at_s)
    return "-" if middle is None else f"{middle * 1e3:.0f}"


def _of(rounds: Sequence[dict[str, float]], key: str) -> list[float]:
    return [one[key] for one in rounds]


def figures(times: Times) -> list[Figure]:
    """The named numbers and their targets."""
    ours = median(times.first_results_s(1))
    gateways = median(_of(times.gateway, "first_result_s"))
    local = median(_of(times.local, "first_result_s"))
    return [
        Figure(
            key="first_result_s",
            meaning="claim to first result, 1 worker, s",
            value=ours,
            target=Target(bound=0.25),
        ),
        Figure(
            key="ratio_dask_gateway",
            meaning="of dask-gateway's time",
            value=ratio(ours, gateways),
            target=Target(bound=0.08),
        ),
        Figure(
            key="ratio_local_cuda_cluster",
            meaning="of a cold LocalCUDACluster's time",
            value=ratio(ours, local),
            target=Target(bound=0.2),
        ),
        Figure(
            key="failures",
            meaning="rounds of ours that failed",
            value=float(times.failures),
            target=Target(bound=0),
        ),
        *(
            Figure(
                key=f"first_result_{n}_s",
                meaning=f"claim to first result, {n} workers, s",
                value=median(times.first_results_s(n)),
            )
            for n in WORKERS[1:]
        ),
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=20, help="rounds of ours (20)")
    parser.add_argument("--peer-rounds", type=int, default=8, help="rounds of each peer (8)")


if __name__ == "__main__":
    main()
