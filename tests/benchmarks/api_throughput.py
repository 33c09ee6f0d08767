"""Durable claims per second over HTTP: 50 connections, pool full, so every claim stays pending.

A real manager with a real agent of simulated devices; one claim holds them all. The load is raw
asyncio, because an HTTP library would be the bottleneck. Every claim that was acknowledged is
looked for in the database file afterwards.

    python tests/benchmarks/api_throughput.py [--json] [--seconds 10]
"""

import asyncio
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from harness import Figure, Target, finish, options

CONNECTIONS = 50
_START_WITHIN_S = 120.0
_WARM_UP_S = 1.0


@dataclass(frozen=True)
class Pool:
    """A running pool: where it is, its user's token, its database and the manager's pid."""

    host: str
    port: int
    token: str
    database: Path
    manager_pid: int


@dataclass
class Load:
    """What the connections saw: seconds of each answer, the claims' ids, wrong statuses."""

    latencies_s: list[float] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    refused: int = 0


@contextmanager
def running_pool() -> Iterator[Pool]:
    """An embedded pool with two simulated devices, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        runtime_file = Path(folder) / "gpupool.json"
        options = ["--embedded", "--simulated=2", "--stop-all-on-exit", "--idle-exit-after=0"]
        options.append("--ManagerApp.most_claims_a_user=1000000")
        places = [f"--runtime-file={runtime_file}", f"--state={folder}/manager"]
        log = (Path(folder) / "log").open("wb")
        command = [sys.executable, "-m", "jupyter_gpupool.manager", *options, *places]
        manager = subprocess.Popen(command, stderr=log, stdout=log)
        try:
            yield _await_pool(runtime_file, manager)
        finally:
            manager.send_signal(signal.SIGTERM)
            manager.wait(60)


def _await_pool(runtime_file: Path, manager: subprocess.Popen[bytes]) -> Pool:
    deadline = time.monotonic() + _START_WITHIN_S
    while not runtime_file.exists():
        if manager.poll() is not None or time.monotonic() > deadline:
            sys.exit("The manager did not start.")
        time.sleep(0.02)
    told = json.loads(runtime_file.read_text())
    address = urlsplit(told["url"])
    database = runtime_file.parent / "manager" / "manager.sqlite"
    return Pool(
        str(address.hostname), address.port or 0, told["token"], database, told["manager_pid"]
    )


class Connection:
    """One kept-alive HTTP connection."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(self._pool.host, self._pool.port)

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send one request and read its answer."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._pool.host}\r\n"
            f"Authorization: Bearer {self._pool.token}\r\n"
            f"Idempotency-Key: {secrets.token_hex(16)}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return int(answer[9:12]), await self._reader.readexactly(length)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


async def fill(pool: Pool) -> None:
    """Take every device, and wait until the claim runs."""
    connection = Connection(pool)
    await connection.open()
    deadline = time.monotonic() + _START_WITHIN_S
    body = json.dumps({"workers": {"min": 2, "max": 2}, "name": "everything"}).encode()
    _, answer = await connection.ask("POST", "/api/v1/claims", body)
    path = f"/api/v1/claims/{json.loads(answer)['id']}"
    while json.loads(answer)["phase"] != "running":
        if time.monotonic() > deadline:
            sys.exit(f"The claim that fills the pool does not run: {answer.decode()}")
        await asyncio.sleep(0.1)
        _, answer = await connection.ask("GET", path)
    connection.close()


async def press(pool: Pool, seconds: float) -> tuple[Load, float]:
    """Ask for claims from all connections for so long; also the seconds it really took."""
    load = Load()
    connections = [Connection(pool) for _ in range(CONNECTIONS)]
    await asyncio.gather(*(connection.open() for connection in connections))
    started = time.perf_counter()
    until = started + seconds
    await asyncio.gather(*(_press_one(connection, until, load) for connection in connections))
    took_s = time.perf_counter() - started
    for connection in connections:
        connection.close()
    return load, took_s


async def _press_one(connection: Connection, until: float, load: Load) -> None:
    body = json.dumps({"workers": {"min": 1, "max": 2}, "time_limit_s": 3600}).encode()
    while (asked := time.perf_counter()) < until:
        status, answer = await connection.ask("POST", "/api/v1/claims", body)
        load.latencies_s.append(time.perf_counter() - asked)
        if status == 201 and b'"phase":"pending"' in answer:
            load.acknowledged.append(answer[7:25].decode())
        else:
            load.refused += 1


def missing(pool: Pool, acknowledged: list[str]) -> int:
    """How many acknowledged claims the database file does not hold."""
    with sqlite3.connect(f"file:{pool.database}?mode=ro", uri=True) as database:
        kept = {row[0] for row in database.execute("SELECT id FROM claims")}
    return len(set(acknowledged) - kept)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(seconds: float) -> tuple[Figure, ...]:
    """Bring a full pool up, press it, look for what was acknowledged."""
    with running_pool() as pool:
        asyncio.run(fill(pool))
        asyncio.run(press(pool, _WARM_UP_S))
        cpu_s = _cpu_s(pool.manager_pid)
        load, took_s = asyncio.run(press(pool, seconds))
        cpu_s = _cpu_s(pool.manager_pid) - cpu_s
        lost = missing(pool, load.acknowledged)
    latencies = sorted(load.latencies_s)
    per_s, p99_s = len(load.acknowledged) / took_s, latencies[int(len(latencies) * 0.99)]
    none = Target(bound=0)
    return (
        Figure(
            key="claims_per_s",
            meaning="durable claims a second",
            value=per_s,
            target=Target(bound=500, at_most=False),
        ),
        Figure(key="p50_s", meaning="median answer, seconds", value=latencies[len(latencies) // 2]),
        Figure(
            key="p99_s", meaning="99th percentile, seconds", value=p99_s, target=Target(bound=0.1)
        ),
        Figure(key="slowest_s", meaning="slowest answer, seconds", value=latencies[-1]),
        Figure(
            key="cpu_s", meaning="manager's CPU time a claim, seconds", value=cpu_s / len(latencies)
        ),
        Figure(key="refused", meaning="refused or not pending", value=load.refused, target=none),
        Figure(key="lost", meaning="acknowledged but not in the file", value=lost, target=none),
    )


def main() -> None:
    """Measure, print a table, and with --json one line of figures."""
    chosen = options(
        __doc__ or "", more=lambda parser: parser.add_argument("--seconds", type=float, default=10)
    )
    figures = measure(chosen.seconds)
    finish(figures, as_json=chosen.json)
    broken = [figure for figure in figures if figure.key in ("refused", "lost") and figure.value]
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
