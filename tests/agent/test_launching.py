"""What a forked process is told."""

from pathlib import Path

import pytest

from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.launching import HostTerms, launch_of
from jupyter_gpupool.agent.state_folder import StateFolder
from jupyter_gpupool.agent.wanted import WantedProcess
from jupyter_gpupool.pool.device import Device
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

    def make(device: Device | None = None, **different):
        worker = WantedWorker(lease_id="l1", device="GPU-1")
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
            wanted, terms=TERMS, devices=(device,) if device else (), scheduler_address="tls://s:1"
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
