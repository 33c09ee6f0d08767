"""What a pool costs at rest, and what each worker costs in memory.

    python tests/benchmarks/idle_cost.py [--json] [--seconds 60]

Manager, agent and zygote of an embedded pool that has been used once, with nobody asking anything.
Memory is PSS, which counts shared pages once over all processes; a claim's scheduler is counted
with its workers.
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

from harness import Figure, Target, finish, note, options, table
from our_pool import devices, wait_until_free, warm_pool

from jupyter_gpupool.cli.process_tree import Seen, tree
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim

WORKERS = 8
_SETTLE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What some processes have used so far, and hold now."""

    processes: int
    cpu_s: float
    pss_bytes: int


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    with devices(WORKERS) as found, warm_pool(found) as pool:
        note(f"Devices: {WORKERS} {found.what}. At rest for {chosen.seconds:g} s…")
        wait_until_free(pool)
        # Our own event stream would be somebody asking.
        pool.background.run(lambda _say: pool.close())
        rest, cpu_percent = at_rest(_manager(pool), chosen.seconds)
        full = with_workers(Pool(pool.address))
    show(rest, full)
    finish(figures(rest, full, cpu_percent), as_json=chosen.json)


def at_rest(manager: int, seconds: float) -> tuple[Cost, float]:
    """Watch the manager's whole tree do nothing; the share of one core it takes, in percent."""
    time.sleep(_SETTLE_S)
    _show_processes(manager)
    before, started_s = cost(manager), time.monotonic()
    time.sleep(seconds)
    after = cost(manager)
    used_s = after.cpu_s - before.cpu_s
    return after, 100 * used_s / (time.monotonic() - started_s)


def with_workers(pool: Pool) -> Cost:
    """The cost while a claim holds all devices."""
    with claim(WORKERS, pool=pool, quiet=True, timeout=60.0):
        time.sleep(_SETTLE_S)
        full = cost(_manager(pool))
    wait_until_free(pool)
    pool.background.run(lambda _say: pool.close())
    return full


def cost(root: int) -> Cost:
    """Add up a process and all that descend from it."""
    found = tree(root)
    return Cost(
        processes=len(found),
        cpu_s=sum(_cpu_s(one) for one in found),
        pss_bytes=sum(_pss_bytes(one) for one in found),
    )


def show(rest: Cost, full: Cost) -> None:
    """Print both states."""
    rows = [
        (name, one.processes, f"{one.pss_bytes / 1e6:.0f}")
        for name, one in (("at rest", rest), (f"a claim of {WORKERS} workers", full))
    ]
    table("Memory", ("state", "processes", "PSS, MB"), rows)


def figures(rest: Cost, full: Cost, cpu_percent: float) -> list[Figure]:
    """The named numbers and their targets."""
    per_worker = (full.pss_bytes - rest.pss_bytes) / WORKERS / 1e6
    return [
        Figure(
            key="cpu_percent",
            meaning="CPU at rest, % of one core",
            value=cpu_percent,
            target=Target(bound=1.0),
        ),
        Figure(
            key="pss_mb",
            meaning="memory at rest, MB PSS",
            value=rest.pss_bytes / 1e6,
            target=Target(bound=350),
        ),
        Figure(
            key="pss_per_worker_mb",
            meaning="memory for each worker, MB PSS",
            value=per_worker,
            target=Target(bound=35),
        ),
    ]


def _show_processes(manager: int) -> None:
    rows = [
        (one.command, one.pid, f"{_pss_bytes(one) / 1e6:.0f}", f"{_cpu_s(one):.2f}")
        for one in sorted(tree(manager), key=lambda one: one.pid)
    ]
    table("Processes at rest", ("process", "pid", "PSS, MB", "CPU so far, s"), rows)


def _cpu_s(process: Seen) -> float:
    try:
        text = Path(f"/proc/{process.pid}/stat").read_text()
    except OSError:
        return 0.0
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _pss_bytes(process: Seen) -> int:
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _manager(pool: Pool) -> int:
    assert pool.address.manager_pid is not None, "an embedded manager tells its process"
    return pool.address.manager_pid


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it rests (60)")


if __name__ == "__main__":
    main()
