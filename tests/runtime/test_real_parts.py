"""Workers on the stub NVML and CUDA: the dask-cuda code that a simulated device leaves out."""

import os

import dask_cuda.initialize
import pytest
import pytest_asyncio
from distributed import Client

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.stubs]
GIB = 2**30


@pytest_asyncio.fixture(loop_scope="module")
async def gpu_host(new_host, stub_state, monkeypatch):
    """A host with a whole GPU and one that is split into MIG instances."""
    stub_state.with_gpus(2).split(1, instances=2, memory_bytes=2 * GIB)
    for name, value in stub_state.env().items():
        monkeypatch.setenv(name, value)
    host = new_host()
    await host.socket.start()
    yield host
    await host.down()


def _look_inside(dask_worker):
    return {
        "visible": os.environ["CUDA_VISIBLE_DEVICES"],
        "limit": dask_worker.data.device_buffer.fast.n,
        "plugins": {name.partition("-")[0] for name in dask_worker.plugins},
        "context": dask_cuda.initialize.cuda_context_created,
    }


async def _worker_on(host, device, memory_bytes):
    claim = host.a_claim()
    options = {"simulated": False, "device": device, "device_memory_bytes": memory_bytes}
    state = await host.up(claim, "lease-a", **options)
    async with Client(state.address, security=claim.security(), asynchronous=True) as client:
        (found,) = (await client.run(_look_inside)).values()
    return found


async def test_worker_on_a_gpu_has_all_of_dask_cudas_parts(gpu_host, stub_state):
    """Its own device is visible and has its context; spilling, affinity, RMM and cuDF are set."""
    uuid = stub_state.gpus[0].uuid
    found = await _worker_on(gpu_host, uuid, 16 * GIB)
    assert found["visible"] == uuid
    assert found["limit"] == int(16 * GIB * 0.8)
    assert {"CPUAffinity", "RMMSetup", "PreImport", "CUDFSetup"} <= found["plugins"]
    assert found["context"].has_context


async def test_worker_on_a_mig_instance_spills_by_its_own_memory(gpu_host, stub_state):
    """dask-cuda would take the parent's memory for an instance's."""
    uuid = stub_state.gpus[1].mig[0].uuid
    found = await _worker_on(gpu_host, uuid, 2 * GIB)
    assert (found["visible"], found["limit"]) == (uuid, int(2 * GIB * 0.8))


async def test_device_that_nvml_does_not_know_is_said_in_a_sentence(gpu_host):
    """A device that has gone between grant and start is no traceback."""
    claim = gpu_host.a_claim()
    await gpu_host.fork_worker(claim, "lease-a", simulated=False, device="GPU-no-such-one")
    assert await gpu_host.end_of(claim, "lease-a") == 1
    log = (gpu_host.folder / f"{claim.claim_id}-lease-a.log").read_text()
    assert log.startswith("The worker cannot start: dask-cuda cannot use device GPU-no-such-one")
