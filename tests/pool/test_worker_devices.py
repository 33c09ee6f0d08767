"""What a worker gets of devices: one way of saying it, and every nonsense refused."""

from typing import Any

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds, WorkerOptions
from jupyter_gpupool.pool.worker_devices import MOST_DEVICES, WorkerDevices, worker_devices
from jupyter_gpupool.protocol.launch import MOST_LOCKS

GIB = 2**30


@pytest.mark.parametrize(
    ("per_worker", "expected"),
    [
        (1, WorkerDevices(count=1)),
        (8.0, WorkerDevices(count=8)),
        (0.5, WorkerDevices(count=0, share=500)),
        (1 / 3, WorkerDevices(count=0, share=333)),
        (0.9996, WorkerDevices(count=1)),
    ],
)
def test_number_is_whole_devices_or_a_part(per_worker: float, expected: WorkerDevices) -> None:
    """Parts are counted in thousandths."""
    assert worker_devices(per_worker) == expected


@pytest.mark.parametrize(
    "per_worker", [0, -1, -0.5, 1.5, 0.0001, MOST_DEVICES + 1, float("nan"), float("inf")]
)
def test_nonsense_is_refused_with_its_bounds(per_worker: float) -> None:
    """One sentence, and what may be asked for."""
    with pytest.raises(
        BadRequest, match=r"make no sense\. Ask for 1 to 16, or for a part"
    ) as refused:
        worker_devices(per_worker)
    assert refused.value.field == "gpus_per_worker"


@pytest.mark.parametrize(
    "parts", [{}, {"share": 500}, {"memory_bytes": 1}, {"count": 0}, {"count": 0, "share": 1000}]
)
def test_one_way_of_saying_it(parts: dict[str, Any]) -> None:
    """Neither two at once nor none."""
    if not parts:
        parts = {"count": -1}
    with pytest.raises(BadRequest):
        WorkerDevices(**parts)


@pytest.mark.parametrize(
    ("memory_gib", "device_gib", "share"), [(10, 16, 625), (10, 80, 125), (1, 3, 334), (4, 2, 2000)]
)
def test_memory_is_a_share_of_each_device_rounded_up(
    memory_gib: int, device_gib: int, share: int
) -> None:
    """So that the part is never smaller than what was asked for."""
    devices = worker_devices(1, memory_gib * GIB)
    assert devices.share_of(device_gib * GIB) == share
    assert share * device_gib * GIB // 1000 >= min(memory_gib, device_gib) * GIB


def test_pool_larger_than_the_part_is_refused() -> None:
    """RMM could never have it; a fraction is of the part, and fits."""
    terms = {"workers": WorkerBounds(1, 1), "devices": worker_devices(1, 4 * GIB)}
    with pytest.raises(BadRequest, match="larger than the 4 GiB") as refused:
        ClaimRequest(**terms, options=WorkerOptions(rmm_pool_size="5GiB"))
    assert refused.value.field == "rmm_pool_size"
    ClaimRequest(**terms, options=WorkerOptions(rmm_pool_size="4GiB"))
    ClaimRequest(**terms, options=WorkerOptions(rmm_pool_size="0.9"))


def test_a_worker_can_hand_all_its_locks_back() -> None:
    """The wire knows as many as a claim may ask for."""
    assert MOST_LOCKS == MOST_DEVICES
