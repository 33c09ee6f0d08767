"""Ends workers that outgrow their host memory."""

import os
import subprocess
import sys

import pytest

from jupyter_gpupool.agent.memory import CloseLook, outgrown
from jupyter_gpupool.agent.procfs import pss_with_children, rss_with_children
from jupyter_gpupool.agent.seen import Stage

GIB = 2**30
NOBODYS = 2**22 - 1
HELD_BYTES = 100 * 2**20
FORKS = f"""
import os, sys
held = b"x" * {HELD_BYTES}
reader, writer = os.pipe()
for _ in range(4):
    if not os.fork():
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
print("ready", flush=True)
sys.stdin.read()
"""


def test_worker_within_its_limit_is_left_alone(worker_seen) -> None:
    """Up to 95 %."""
    seen = worker_seen(memory_limit_bytes=100 * GIB)
    assert outgrown([seen], lambda _: 95 * GIB - 1) == ()


def test_worker_above_95_percent_is_found_with_both_numbers(worker_seen) -> None:
    """The user reads them."""
    seen = worker_seen(memory_limit_bytes=100 * GIB)
    [found] = outgrown([seen], lambda _: 99 * GIB, lambda _: 95 * GIB)
    assert found.reason == "it used 95 GiB of its 100 GiB of host memory"
    assert found.process == seen.process


@pytest.mark.parametrize(
    "different", [{"stage": Stage.STOPPING}, {"process": None}, {"memory_limit_bytes": None}]
)
def test_what_does_not_run_or_has_no_limit_is_not_judged(worker_seen, different) -> None:
    """Nor is a scheduler."""
    seen = worker_seen(**({"memory_limit_bytes": 1} | different))
    assert outgrown([seen], lambda _: GIB, lambda _: GIB) == ()


def test_pages_that_children_share_count_once(worker_seen) -> None:
    """A data loader's forks hold what their parent holds, and need nothing for it."""
    seen = worker_seen(memory_limit_bytes=100 * GIB)
    assert outgrown([seen], lambda _: 900 * GIB, lambda _: 90 * GIB) == ()


def test_forks_of_a_real_process_add_little() -> None:
    """By resident memory each of them counts as much as their parent."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout.readline() == b"ready\n"
        counted, used = rss_with_children(parent.pid), pss_with_children(parent.pid)
        parent.stdin.close()
    assert counted > 4 * HELD_BYTES
    assert HELD_BYTES < used < 2 * HELD_BYTES


@pytest.fixture
def close_look():
    """Looks that take a second each, at a process that is gone; they run when a test says so."""
    times, found, due = [0.0], iter([7, 8]), []

    def read(_: int) -> int:
        times[0] += 1
        return next(found)

    return CloseLook(read, lambda: times[0], due.append), times, due


def test_a_close_look_is_not_waited_for(close_look) -> None:
    """It takes seconds for a large process; there is one at a time."""
    look, _, due = close_look
    assert [look(NOBODYS), look(NOBODYS)] == [0, 0]
    [work] = due
    work()
    assert look(NOBODYS) == 7


def test_close_looks_take_a_twentieth_of_the_time(close_look) -> None:
    """In between a process counts as it did."""
    look, times, due = close_look
    look(NOBODYS)
    due.pop()()
    times[0] += 19
    assert (look(NOBODYS), due) == (7, [])
    times[0] += 1
    look(NOBODYS)
    due.pop()()
    assert look(NOBODYS) == 8


def test_a_process_counts_no_less_than_it_has_itself() -> None:
    """As for a Nanny, and without waiting for a close look."""
    assert CloseLook(start=lambda _: None)(os.getpid()) > 10 * 2**20


def test_memory_of_a_real_process_is_read() -> None:
    """This one's is somewhere above 10 MiB."""
    assert rss_with_children(os.getpid()) > 10 * 2**20


def test_process_that_is_gone_uses_nothing() -> None:
    """It is not an error either."""
    assert rss_with_children(NOBODYS) == 0
