"""GPUs that fall off the bus, change their order or are MIG instances; NVML missing or failing."""

import signal
from collections.abc import Callable, Iterator

import pytest
from e2e_harness.devices import SimulatedDevices, StubDevices
from e2e_harness.running_pool import MakePool, RunningPool, Setup, strike
from waiting import eventually, stays

MakeStubs = Callable[[int], StubDevices]


@pytest.fixture
def stub_devices(stubs: MakeStubs) -> StubDevices:
    """Two stub GPUs."""
    return stubs(2)


@pytest.fixture
def stub_pool(make_pool: MakePool, stub_devices: StubDevices) -> Iterator[RunningPool]:
    """A pool on them that checks its promises at the end."""
    pool = make_pool(stub_devices).start()
    yield pool
    pool.check()
    pool.close()


def test_free_gpu_that_falls_off_the_bus_is_not_leased(
    stub_pool: RunningPool, stub_devices: StubDevices
) -> None:
    """It is shown as lost with a sentence; the other one is leased."""
    lost = _uuids(stub_pool)[0]
    stub_devices.state.lose(0)
    eventually(lambda: _device(stub_pool, lost)["health"] == "lost", 15, "it is lost")
    assert _device(stub_pool, lost)["problem"]
    claim_id = stub_pool.api.claim(1)
    stub_pool.wait_phase(claim_id, "running")
    assert [lease["device"] for lease in stub_pool.api.view(claim_id)["leases"]] != [lost]
    stub_pool.end(claim_id)


def test_leased_gpu_that_falls_off_the_bus_is_told_to_its_claim(
    stub_pool: RunningPool, stub_devices: StubDevices
) -> None:
    """Its user reads which device was lost; it is not leased again after its worker has gone."""
    claim_id = stub_pool.api.claim(1)
    stub_pool.wait_phase(claim_id, "running")
    device = stub_pool.api.view(claim_id)["leases"][0]["device"]
    stub_devices.state.lose(_uuids(stub_pool).index(device))
    eventually(
        lambda: [r for r in stub_pool.api.reasons(claim_id) if "lost" in r or "bus" in r],
        15,
        "the claim says so",
        context=stub_pool.tell(claim_id),
    )
    stub_pool.api.release(claim_id)
    second = stub_pool.api.claim(1)
    stub_pool.wait_phase(second, "running")
    assert stub_pool.api.view(second)["leases"][0]["device"] != device
    stub_pool.end(second)


def test_nvml_that_fails_midway_stops_new_leases_only(
    stub_pool: RunningPool, stub_devices: StubDevices
) -> None:
    """What runs goes on, nothing new is leased, the host says why; then it works again."""
    first = stub_pool.api.claim(1)
    stub_pool.wait_phase(first, "running")
    stub_devices.state.fail()
    eventually(lambda: stub_pool.api.get("/status")["free"] == 0, 15, "nothing is free")
    assert all(d["problem"] for d in stub_pool.api.get("/devices"))
    second = stub_pool.api.claim(1)
    stays(lambda: stub_pool.api.phase(second) == "pending", 1, "it waits")
    assert stub_pool.api.phase(first) == "running"
    stub_devices.state.fail(0)
    stub_pool.wait_phase(second, "running", deadline_s=30)
    stub_pool.end(first)
    stub_pool.end(second)


def test_shuffled_order_moves_no_lease(stub_pool: RunningPool, stub_devices: StubDevices) -> None:
    """After an agent's restart in another order each claim still has its own device."""
    claims = [stub_pool.api.claim(1) for _ in range(2)]
    for claim_id in claims:
        stub_pool.wait_phase(claim_id, "running")
    before = [stub_pool.api.view(c)["leases"][0]["device"] for c in claims]
    workers = [stub_pool.worker_of(c) for c in claims]
    assert stub_pool.agent is not None
    strike(stub_pool.agent, signal.SIGKILL)
    stub_devices.state.shuffle([1, 0])
    stub_pool.start_agent()
    for claim_id in claims:
        stub_pool.wait_workers(claim_id, 1)
    assert [stub_pool.api.view(c)["leases"][0]["device"] for c in claims] == before
    assert all(worker.lives for worker in workers)
    for claim_id in claims:
        stub_pool.end(claim_id)


def test_mig_instances_are_devices_of_their_own(make_pool: MakePool, stubs: MakeStubs) -> None:
    """Each has its own memory, is leased alone by its UUID, and its worker computes."""
    found = stubs(1)
    found.state.split(0, instances=2, memory_bytes=3 * 2**30)
    pool = make_pool(found).start()
    devices = pool.api.get("/devices")
    assert [device["device"]["memory_bytes"] for device in devices] == [3 * 2**30] * 2
    assert all(d["uuid"].startswith("MIG-") for d in devices)
    user = pool.user()
    claim_id = user.ask("claim", gpus=2)
    assert user.ask("compute", claim_id=claim_id) == 328350
    pool.end(claim_id)
    user.end()
    pool.check()


def test_missing_nvml_is_simulated_with_a_notice(make_pool: MakePool) -> None:
    """Without being asked for, simulated devices come with one clear sentence."""
    pool = make_pool(SimulatedDevices(None)).start()
    assert pool.api.get("/status")["simulated"]
    assert "simulated" in (pool.folder / "logs" / "agent.log").read_text()


def test_missing_nvml_is_refused_where_simulation_is(make_pool: MakePool) -> None:
    """Told never to simulate, the agent offers no device and says what is missing."""
    pool = make_pool(SimulatedDevices(0), Setup())
    pool.start_manager()
    agent = pool.spawn_agent()
    log = pool.folder / "logs" / "agent.log"
    eventually(
        lambda: not agent.lives or (pool.api.get("/hosts") and not pool.api.get("/devices")),
        15,
        "it has no device",
    )
    assert "NVML" in log.read_text()
    assert "Traceback" not in log.read_text()


def _uuids(pool: RunningPool) -> list[str]:
    """The devices in NVML's order."""
    found = sorted(pool.api.get("/devices"), key=lambda d: d["device"]["index"])
    return [str(device["uuid"]) for device in found]


def _device(pool: RunningPool, uuid: str):
    return next(device for device in pool.api.get("/devices") if device["uuid"] == uuid)
