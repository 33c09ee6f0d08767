"""What `scale` says of a claim that is beyond the pool."""

import pytest

from jupyter_gpupool.cli.claims import shortage
from jupyter_gpupool.protocol.api import Role, StatusView


@pytest.mark.parametrize(
    ("workers", "hosts", "devices", "said"),
    [
        (4, 1, 4, ""),
        (5, 1, 4, "The pool has no more than 4 devices now."),
        (1, 1, 0, "The pool has no more than 0 devices now."),
        (1, 0, 0, "No host of the pool is in touch now."),
    ],
)
def test_shortage_is_told_by_what_is_in_touch(
    workers: int, hosts: int, devices: int, said: str
) -> None:
    """A pool whose hosts are still to join is not said to have none."""
    status = StatusView(
        version="0",
        user="ann",
        role=Role.USER,
        hosts=hosts,
        devices=devices,
        free=0,
        simulated=False,
        waiting=0,
        running=0,
        my_claims=0,
        seq=0,
    )
    assert shortage(workers, status) == said
