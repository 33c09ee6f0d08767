"""Ends workers that outgrow their host memory."""

import os

import pytest

from jupyter_gpupool.agent.memory import outgrown
from jupyter_gpupool.agent.procfs import rss_with_children
from jupyter_gpupool.agent.seen import Stage

GIB = 2**30


def test_worker_within_its_limit_is_left_alone(worker_seen) -> None:
    """Up to 95 %."""
    seen = worker_seen(memory_limit_bytes=100 * GIB)
    assert outgrown([seen], lambda _: 95 * GIB - 1) == ()


def test_worker_above_95_percent_is_found_with_both_numbers(worker_seen) -> None:
    """The user reads them."""
    seen = worker_seen(memory_limit_bytes=100 * GIB)
    [found] = outgrown([seen], lambda _: 95 * GIB)
    assert found.reason == "it used 95 GiB of its 100 GiB of host memory"
    assert found.process == seen.process


@pytest.mark.parametrize(
    "different", [{"stage": Stage.STOPPING}, {"process": None}, {"memory_limit_bytes": None}]
)
def test_what_does_not_run_or_has_no_limit_is_not_judged(worker_seen, different) -> None:
    """Nor is a scheduler."""
    seen = worker_seen(**({"memory_limit_bytes": 1} | different))
    assert outgrown([seen], lambda _: GIB) == ()


def test_memory_of_a_real_process_is_read() -> None:
    """This one's is somewhere above 10 MiB."""
    assert rss_with_children(os.getpid()) > 10 * 2**20


def test_process_that_is_gone_uses_nothing() -> None:
    """It is not an error either."""
    assert rss_with_children(2**22 - 1) == 0
