"""What the pool costs a notebook: imports, `%gpupool status`, the first use, a server's start.

    python tests/benchmarks/notebook.py [--json] [--rounds 10]

Each round is a fresh process. The import is timed after IPython's own, with the magics registered
as they are in every kernel. `%gpupool status` asks a warm pool from a shell that has asked once.
The first use begins with nothing running and ends with one task's result: it imports Dask, brings
up manager, agent and zygote, claims a device and computes on it. A Jupyter server's start is timed
until it answers, in turns with its extension switched on and off.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import Figure, Target, finish, median, note, options, spread, table
from our_pool import Devices, devices, warm_pool
from server_start import seconds_to_answer

_ROUNDS = Path(__file__).parent / "peers" / "notebook_rounds.py"
_ROUND_WITHIN_S = 120
_COLD_ROUNDS = 5


@dataclass(slots=True)
class Times:
    """Everything that was measured, in seconds."""

    imports: list[float] = field(default_factory=list)
    status: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    server_with: list[float] = field(default_factory=list)
    server_without: list[float] = field(default_factory=list)


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    with devices(2) as found:
        note(f"Devices: {found.what}.")
        times = measure(found, chosen.rounds)
    show(times)
    finish(figures(times), as_json=chosen.json)


def measure(found: Devices, rounds: int) -> Times:
    """One thing after the other; each pool is gone before the next is timed."""
    times = Times()
    for _ in range(rounds):
        times.imports += _seconds("import", os.environ)
    with warm_pool(found) as pool:
        where = {"GPUPOOL_URL": pool.address.url, "GPUPOOL_TOKEN": pool.address.token}
        times.status += _seconds("status", os.environ | where, str(2 * rounds))
    for _ in range(min(rounds, _COLD_ROUNDS)):
        times.cold += _cold(found)
    for number in range(rounds):
        for enabled in (True, False) if number % 2 else (False, True):
            taken = times.server_with if enabled else times.server_without
            taken.append(seconds_to_answer(extension=enabled))
    return times


def _cold(found: Devices) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="gpupool-cold-") as folder:
        return _seconds("cold", os.environ | found.environment, folder, *found.options)


def _seconds(what: str, environment: Mapping[str, str], *arguments: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, _ROUNDS, what, *arguments],
        env=dict(environment),
        stdout=subprocess.PIPE,
        text=True,
        timeout=_ROUND_WITHIN_S,
        check=True,
    )
    seconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def show(times: Times) -> None:
    """Print all times."""
    rows = [
        ("import of jupyter_gpupool, beyond IPython", *spread(times.imports)),
        ("%gpupool status", *spread(times.status)),
        ("first use, from nothing to first result", *spread(times.cold)),
        ("a Jupyter server answers, with us", *spread(times.server_with)),
        ("a Jupyter server answers, without", *spread(times.server_without)),
    ]
    table("In the notebook", ("ms", "rounds", "median", "fastest", "slowest"), rows)


def figures(times: Times) -> list[Figure]:
    """The figures that have a target."""
    with_us, without = median(times.server_with), median(times.server_without)
    added = with_us - without if with_us is not None and without is not None else None
    return [
        Figure(
            key="import_s",
            meaning="import of jupyter_gpupool beyond IPython, s",
            value=median(times.imports),
            target=Target(bound=0.06),
        ),
        Figure(
            key="status_s",
            meaning="%gpupool status, s",
            value=median(times.status),
            target=Target(bound=0.05),
        ),
        Figure(
            key="cold_first_result_s",
            meaning="first use, from nothing to first result, s",
            value=median(times.cold),
            target=Target(bound=5.0),
        ),
        Figure(
            key="server_start_added_s",
            meaning="what the extension adds to a Jupyter server's start, s",
            value=added,
            target=Target(bound=0.15),
        ),
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=10, help="rounds of each (10)")


if __name__ == "__main__":
    main()
