"""What a forked process is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.launching import HostTerms, launch_of
from jupyter_gpupool.agent.state_folder import StateFolder
from jupyter_gpupool.agent.wanted import WantedProcess
from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.protocol.launch import Role
from jupyter_gpupool.protocol.link import TlsCredentials, WantedScheduler, WantedWorker

TERMS = HostTerms(
    folder=StateFolder(Path("/state")), listen="10.0.0.1", memory_share_bytes=7 * 2**30
)
DEVICE = Device(uuid="GPU-1", index=0, model="A100", memory_bytes=80, cpu_affinity=(1, 2))


def credentials(name: str) -> TlsCredentials:
    return TlsCredentials(ca="ca", certificate=name, key=f"{name}-key")


@pytest.fixture
def launch(wanted_claim):
    """The launch of the scheduler, or of a worker on a device."""

    def make(device: Device | None = None, *further: Device, share: int = 1000, **different):
        others = tuple(each.uuid for each in further)
        worker = WantedWorker(lease_id="l1", device="GPU-1", further=others, share=share)
        claim = wanted_claim(
            "c1",
            worker,
            scheduler=WantedScheduler(
                credentials=credentials("scheduler"), dashboard_prefix="secret"
            ),
            worker_credentials=credentials("worker"),
            **different,
        )
        key = ProcessKey("c1", 1, "l1" if device else None)
        wanted = WantedProcess(key=key, claim=claim, worker=worker if device else None)
        return launch_of(
            wanted,
            terms=TERMS,
            devices=(device, *further) if device else (),
            scheduler_address="tls://s:1",
        )

    return make


def test_each_party_gets_its_own_credentials(launch) -> None:
    """A worker cannot pass for its scheduler."""
    assert launch().tls.certificate == "scheduler"
    assert launch(DEVICE).tls.certificate == "worker"


def test_worker_learns_its_device(launch) -> None:
    """By UUID, with its own memory and processors."""
    worker = launch(DEVICE).worker
    assert (worker.device, worker.device_memory_bytes) == ("GPU-1", 80)
    assert worker.cpu_affinity == (1, 2)


def test_only_the_scheduler_learns_the_dashboards_secret(launch) -> None:
    """A worker has no use for it."""
    assert launch().scheduler.dashboard_prefix == "secret"
    assert launch(DEVICE).scheduler is None


def test_memory_is_the_claims_or_the_hosts_share(launch) -> None:
    """Every worker has a limit."""
    assert launch(DEVICE).worker.memory_limit_bytes == 7 * 2**30
    options = WorkerOptions(memory_limit_bytes=2**30)
    assert launch(DEVICE, options=options).worker.memory_limit_bytes == 2**30


def test_every_option_reaches_the_worker(launch) -> None:
    """None is forgotten on the way."""
    options = WorkerOptions(
        nthreads=3,
        device_memory_limit="0.5",
        rmm_pool_size="1GiB",
        rmm_maximum_pool_size="2GiB",
        enable_cudf_spill=True,
        cudf_spill_stats=1,
        pre_import=("cupy",),
    )
    worker = launch(DEVICE, options=options).worker
    names = {name for name in options.__dataclass_fields__ if hasattr(worker, name)}
    assert names >= set(options.__dataclass_fields__) - {"protocol"}
    assert all(
        getattr(worker, name) == getattr(options, name) for name in names - {"memory_limit_bytes"}
    )


def test_marks_cannot_be_overwritten(launch) -> None:
    """A claim's own variables come first, the marks last."""
    env = launch(DEVICE, env={"A": "1", "GPUPOOL_CLAIM": "another"}).env
    assert env == {"A": "1", "GPUPOOL_CLAIM": "c1", "GPUPOOL_LEASE": "l1"}


def test_secrets_stay_out_of_repr(launch) -> None:
    """A launch that is logged by mistake gives nothing away."""
    text = repr(launch(env={"TOKEN": "hush"}))
    assert not [word for word in ("scheduler-key", "secret", "hush") if word in text]


def test_names_are_the_leases(launch) -> None:
    """A scheduler has none."""
    assert (launch().name, launch().role) == ("", Role.SCHEDULER)
    assert (launch(DEVICE).name, launch(DEVICE).role) == ("l1", Role.WORKER)


def test_worker_with_several_devices_learns_them_all(launch) -> None:
    """In their order, with the processors near any of them and memory for each."""
    worker = launch(DEVICE, replace(DEVICE, uuid="GPU-2", cpu_affinity=(2, 3))).worker
    assert (worker.device, worker.further) == ("GPU-1", ("GPU-2",))
    assert worker.cpu_affinity == (1, 2, 3)
    assert worker.memory_limit_bytes == 2 * 7 * 2**30


def test_part_of_a_device_is_all_the_memory_a_worker_knows_of(launch) -> None:
    """Of the device, and in proportion of the host; but enough for a Python."""
    device = replace(DEVICE, memory_bytes=80 * 2**30)
    worker = launch(device, share=250).worker
    assert (worker.is_part, worker.device_memory_bytes) == (True, 20 * 2**30)
    assert worker.memory_limit_bytes == 7 * 2**30 // 4
    assert launch(device, share=1).worker.memory_limit_bytes == 512 * 2**20


@pytest.mark.parametrize("name", ["rmm_pool_size", "rmm_maximum_pool_size"])
def test_pool_that_its_part_cannot_hold_is_refused(launch, name) -> None:
    """With both sizes; one that fits, and a fraction of the part, are not."""
    device = replace(DEVICE, memory_bytes=80 * 2**30)
    with pytest.raises(BadRequest, match="is 21 GiB, and a worker's part of the device is 20 GiB"):
        launch(device, share=250, options=WorkerOptions(**{name: "21GiB"}))
    for size in ("20GiB", "0.9"):
        launch(device, share=250, options=WorkerOptions(**{name: size}))


def test_several_mig_instances_are_refused(launch) -> None:
    """CUDA would show the worker the first one alone."""
    instance = replace(DEVICE, parent="GPU-9")
    with pytest.raises(BadRequest, match="one MIG instance"):
        launch(instance, replace(instance, uuid="GPU-2"))
