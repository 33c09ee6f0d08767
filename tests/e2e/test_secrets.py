"""No process of one claim, and no zygote, ever holds another claim's private key."""

import os
import re
from pathlib import Path

import pytest
from e2e_harness.processes import Process
from e2e_harness.running_pool import RunningPool

_CHUNK = 1 << 24


@pytest.fixture
def needles(pool: RunningPool) -> tuple[bytes, ...]:
    """Pieces of a first claim's private keys, while it runs."""
    claim_id = pool.api.claim()
    pool.wait_phase(claim_id, "running")
    key = pool.api.get(f"/claims/{claim_id}/connection")["key"]
    keys = [key, *_keys_of(pool.scheduler_of(claim_id)), *_keys_of(pool.worker_of(claim_id))]
    return tuple({_middle(text).encode() for text in keys})


def test_second_claims_processes_hold_no_key_of_the_first(
    pool: RunningPool, needles: tuple[bytes, ...], as_root: None
) -> None:
    """Every readable page of its scheduler, its worker and the zygote is searched."""
    second = pool.api.claim()
    pool.wait_phase(second, "running")
    suspects = [pool.scheduler_of(second), pool.worker_of(second), *pool.zygotes()]
    holders = [s.command for s in suspects if any(_holds(s, needle) for needle in needles)]
    assert not holders
    pool.end(second)


def test_search_finds_a_key_where_there_is_one(
    pool: RunningPool, needles: tuple[bytes, ...], as_root: None
) -> None:
    """The search itself works: a claim's own processes do hold its keys."""
    owners = [r.process for r in pool.records() if r.process.lives]
    assert any(_holds(owner, needle) for owner in owners for needle in needles)


def test_no_secret_is_in_argv_environment_or_log(
    pool: RunningPool, needles: tuple[bytes, ...]
) -> None:
    """Neither keys nor tokens stand where other users or log readers could see them."""
    secrets = [*needles, pool.api.token.encode()]
    places = [r.process.command.encode() + r.process.environment for r in pool.records()]
    places += [z.command.encode() + z.environment for z in pool.zygotes()]
    places += [path.read_bytes() for path in pool.folder.rglob("*.log")]
    assert not [secret for secret in secrets for place in places if secret in place]


def _middle(pem: str) -> str:
    """A piece of the key that stands on one line of every way to write it."""
    line = pem.strip().splitlines()[1]
    return line[8:56]


def _keys_of(process: Process) -> list[str]:
    """PEM texts of private keys in a process's memory."""
    pattern = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\\?n?\s?[A-Za-z0-9+/=\n\\]{80,400}")
    found = []
    for chunk in _memory(process):
        found += [match.decode().replace("\\n", "\n") for match in pattern.findall(chunk)]
    return [text for text in found if len(text.splitlines()) > 1 and len(text.splitlines()[1]) > 60]


def _holds(process: Process, needle: bytes) -> bool:
    return any(needle in chunk for chunk in _memory(process))


def _memory(process: Process):
    """Every readable page, in overlapping pieces; shared libraries' files left out."""
    with Path(f"/proc/{process.pid}/maps").open() as maps:
        spans = [line.split() for line in maps]
    descriptor = os.open(f"/proc/{process.pid}/mem", os.O_RDONLY)
    try:
        for span in spans:
            if "r" in span[1] and "w" in span[1]:
                start, end = (int(part, 16) for part in span[0].split("-"))
                yield from _span(descriptor, start, end)
    finally:
        os.close(descriptor)


def _span(descriptor: int, start: int, end: int):
    for at in range(start, end, _CHUNK):
        try:
            yield os.pread(descriptor, min(_CHUNK + 64, end - at), at)
        except OSError:
            return
