"""A host tells which kernels have ended on it, and of no other host's."""

from dataclasses import replace

import pytest

from jupyter_gpupool.agent.kernel_watch import Here
from jupyter_gpupool.protocol.link import WantedKernel

STARTED = {1: 0, 7: 100}
HERE = Here(mark="m", boot_id="b", started_at=STARTED.get)


def a_kernel(**more) -> WantedKernel:
    """A kernel that runs here."""
    known = {"kernel_id": "k", "host": "m", "boot_id": "b", "pid": 7, "started": 100}
    return WantedKernel(**known | more)


@pytest.mark.parametrize(
    ("kernel", "is_gone"),
    [
        (a_kernel(), False),
        (a_kernel(pid=8), True),
        (a_kernel(started=99), True),
        (a_kernel(boot_id="before"), True),
        (a_kernel(host="other", pid=8), False),
    ],
    ids=["lives", "has ended", "its number came back", "before the boot", "elsewhere"],
)
def test_kernel_is_gone_only_if_it_was_here(kernel, is_gone):
    """By process, start and boot."""
    assert HERE.has_lost(kernel) is is_gone


def test_nobody_is_missed_where_processes_are_hidden():
    """An agent that may see only its own cannot tell."""
    blind = replace(HERE, started_at=lambda _: None)
    assert not blind.has_lost(a_kernel())
