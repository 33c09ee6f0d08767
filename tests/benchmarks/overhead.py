"""What a claim costs while it computes, against a plain LocalCUDACluster of the same size.

    python tests/benchmarks/overhead.py [--json] [--rounds 16]

Both have two workers with one thread on the stub devices, and their client is the same script.
They take turns, so that the machine's moods hit both, and only one of them is up at a time: an idle
LocalCUDACluster takes 15 % of a core on two cores, which would be charged to the other. Ours has
mutual TLS and its scheduler in a process of its own; LocalCUDACluster has neither. What TLS costs
shows where blocks go from worker to worker, which has no target: it is the price of keeping others
out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness import Figure, Target, finish, median, note, options, ratio, spread, table
from our_pool import devices, wait_until_free, warm_pool

WORKERS = 2
_MEASURE_FOR_S = 240.0
_ROUNDS_OF_A_TURN = 4
SIDES = ("claim", "local")
KINDS = {
    "tasks": "500 empty tasks",
    "array": "an array reduction",
    "transfers": "an array plus its transpose",
}
_BOUND = {kind: Target(bound=0.97, at_most=False) for kind in ("tasks", "array")}
Seconds = dict[tuple[str, str], list[float]]


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    with devices(WORKERS) as found:
        if not found.environment:
            note("Left out: LocalCUDACluster needs the stub NVML, and there is no C compiler.")
        seconds = measure(found.environment, chosen.rounds) if found.environment else {}
    show(seconds)
    finish([_figure(kind, seconds) for kind in KINDS], as_json=chosen.json)


def measure(environment: Mapping[str, str], rounds: int) -> Seconds:
    """Let both take turns of some rounds; the first round of each turn warms up.

    A loaded machine gets fewer turns rather than no end.
    """
    seconds: Seconds = {(side, kind): [] for side in SIDES for kind in KINDS}
    # Two sets of stub devices: a claim holds its own, and LocalCUDACluster asks nobody.
    with our_environment() as ours:
        where = {"claim": ours, "local": environment}
        until_s = time.monotonic() + _MEASURE_FOR_S
        for number in range(-(-rounds // _ROUNDS_OF_A_TURN)):
            if time.monotonic() > until_s:
                break
            for name in SIDES if number % 2 else reversed(SIDES):
                with side(name, where[name]) as client:
                    _take_turn(client, name, seconds)
    return seconds


def _take_turn(client: "subprocess.Popen[str]", name: str, seconds: Seconds) -> None:
    for number in range(_ROUNDS_OF_A_TURN + 1):
        for kind in KINDS:
            took_s = _ask(client, kind)
            if number:
                seconds[name, kind].append(took_s)


@contextmanager
def our_environment() -> Iterator[dict[str, str]]:
    """What a client of a warm pool has to know."""
    with (
        devices(WORKERS) as found,
        warm_pool(found) as pool,
        tempfile.NamedTemporaryFile("w") as token,
    ):
        token.write(pool.address.token)
        token.flush()
        wait_until_free(pool)
        yield {"GPUPOOL_URL": pool.address.url, "GPUPOOL_TOKEN_FILE": token.name}


@contextmanager
def side(what: str, environment: Mapping[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """One client process, ready to be asked."""
    script = Path(__file__).parent / "peers" / "work_rounds.py"
    client = subprocess.Popen(
        [sys.executable, script, what, str(WORKERS)],
        env=os.environ | dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        _answer(client)
        yield client
    finally:
        assert client.stdin is not None
        client.stdin.close()
        _end(client)


def _end(client: "subprocess.Popen[str]") -> None:
    try:
        client.wait(30)
    except subprocess.TimeoutExpired:
        client.kill()
        client.wait()


def show(seconds: Seconds) -> None:
    """Print both sides' times."""
    heads = ("time of one round, ms", "rounds", "median", "fastest", "slowest")
    rows = [
        (f"{KINDS[kind]}, {name}", *spread(times))
        for (name, kind), times in sorted(seconds.items())
    ]
    table("Overhead", heads, rows)


def _figure(kind: str, seconds: Seconds) -> Figure:
    ours, plain = (median(seconds.get((name, kind), [])) for name in SIDES)
    return Figure(
        key=f"{kind}_ratio",
        meaning=f"{KINDS[kind]}: speed against LocalCUDACluster",
        value=ratio(plain, ours),
        target=_BOUND.get(kind),
    )


def _ask(client: "subprocess.Popen[str]", kind: str) -> float:
    assert client.stdin is not None
    client.stdin.write(f"{kind}\n")
    client.stdin.flush()
    return _answer(client)["seconds"]


def _answer(client: "subprocess.Popen[str]") -> dict[str, float]:
    assert client.stdout is not None
    line = client.stdout.readline()
    if not line:
        raise SystemExit("The client has ended; its words are above.")
    answer: dict[str, float] = json.loads(line)
    return answer


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=16, help="rounds of each side (16)")


if __name__ == "__main__":
    main()
