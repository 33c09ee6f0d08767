"""The stubs against the real libraries that use them: nvidia-ml-py, cuda.core, dask-cuda."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stubs.state import StubState

pytestmark = pytest.mark.stubs
DEADLINE_S = 120

CONTEXT_HOLDER = """
import sys
from cuda.core import Device
Device().set_current()
print("ready", flush=True)
sys.stdin.read()
"""

LIST = """
import pynvml
pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
        print(pynvml.nvmlDeviceGetUUID(handle), process.pid, process.usedGpuMemory)
"""

CLUSTER = """
import os
import dask
from dask_cuda import LocalCUDACluster
from distributed import Client

if __name__ == "__main__":
    cluster = LocalCUDACluster(n_workers=2, dashboard_address=None)
    with cluster, Client(cluster) as client:
        total = sum(client.gather(client.map(lambda x: x * x, range(10))))
        devices = client.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"].split(",")[0])
        limits = client.run(lambda dask_worker: type(dask_worker.data).__name__)
        print(total, sorted(devices.values()), set(limits.values()))
"""

WORKER = """
import subprocess, sys
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster, Client(cluster) as client:
        command = [sys.executable, "-m", "dask", "cuda", "worker", cluster.scheduler_address]
        worker = subprocess.Popen([*command, "--no-dashboard"])
        client.wait_for_workers(1, timeout=60)
        print(client.submit(sum, [1, 2]).result())
        client.shutdown()
        worker.wait(60)
"""


def _run(state: StubState, folder: Path, program: str, **variables: str) -> str:
    script = folder / "program.py"
    script.write_text(program)
    ran = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | state.env() | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_context_is_listed_while_its_process_lives(stub_state: StubState, tmp_path: Path):
    """NVML lists who made a CUDA context, on the device it was made, and forgets the dead."""
    stub_state.with_gpus(3)
    uuid = stub_state.gpus[2].uuid
    holder = subprocess.Popen(
        [sys.executable, "-c", CONTEXT_HOLDER],
        env=os.environ | stub_state.env() | {"CUDA_VISIBLE_DEVICES": uuid},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout.readline() == "ready\n"
        alive = _run(stub_state, tmp_path, LIST)
        holder.kill()
    assert alive == f"{uuid} {holder.pid} {stub_state.context_bytes}"
    assert _run(stub_state, tmp_path, LIST) == ""


def test_a_context_on_an_instance_counts_for_it_alone(stub_state: StubState, tmp_path: Path):
    """A MIG UUID is a visible device; its siblings stay unused."""
    stub_state.with_gpus(1).split(0)
    first, second = stub_state.gpus[0].mig
    program = """
from cuda.core import Device
import pynvml
Device().set_current()
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
for at in range(2):
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, at)
    used = pynvml.nvmlDeviceGetMemoryInfo(mig).used
    ids = [p.gpuInstanceId for p in pynvml.nvmlDeviceGetComputeRunningProcesses(mig)]
    print(pynvml.nvmlDeviceGetUUID(mig), used, ids)
"""
    lines = _run(stub_state, tmp_path, program, CUDA_VISIBLE_DEVICES=second.uuid).splitlines()
    assert lines == [
        f"{first.uuid} 0 []",
        f"{second.uuid} {stub_state.context_bytes} [{second.gpu_instance}]",
    ]


def test_a_forked_child_cannot_use_its_parents_cuda(stub_state: StubState, tmp_path: Path):
    """As with the real driver: whoever initialises CUDA before forking is found out."""
    stub_state.with_gpus(1)
    program = """
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
print(cuda.cuInit(0), flush=True)
if not os.fork():
    print(cuda.cuInit(0), flush=True)
    os._exit(0)
os.wait()
"""
    assert _run(stub_state, tmp_path, program).split() == ["0", "3"]


def test_a_lost_gpu_makes_nvidia_ml_py_say_so(stub_state: StubState, tmp_path: Path):
    """The error that code under test meets is the library's own."""
    stub_state.with_gpus(2).lose(1)
    program = """
import pynvml
pynvml.nvmlInit()
try:
    pynvml.nvmlDeviceGetHandleByIndex(1)
except pynvml.NVMLError_GpuIsLost as error:
    print(error)
"""
    assert _run(stub_state, tmp_path, program) == "GPU is lost"


def test_local_cuda_cluster_computes_on_the_stubs(stub_state: StubState, tmp_path: Path):
    """Real dask-cuda runs two workers, each on its own device with spilling set up."""
    stub_state.with_gpus(2)
    said = _run(stub_state, tmp_path, CLUSTER)
    assert said == "285 ['0', '1'] {'DeviceHostFile'}"


def test_dask_cuda_worker_computes_on_the_stubs(stub_state: StubState, tmp_path: Path):
    """The command that people know starts here as well."""
    stub_state.with_gpus(1)
    assert _run(stub_state, tmp_path, WORKER) == "3"


def test_a_struct_of_no_known_form_is_refused(stub_state: StubState, tmp_path: Path):
    """As by the real library: a caller that forgets the version gets no answer."""
    stub_state.with_gpus(1)
    program = """
import pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
print(pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).total)
memory = pynvml.c_nvmlMemory_v2_t()
call = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetMemoryInfo_v2")
print(call(handle, pynvml.byref(memory)))
"""
    assert _run(stub_state, tmp_path, program).split() == [str(16 * 2**30), "25"]
