"""Schedulers and workers that are forked for real, as the agent has it done."""

import asyncio
import os
import random
import ssl
import tempfile
from pathlib import Path

import numpy as np
import psutil
import pytest
from distributed import Client

from jupyter_gpupool.protocol.launch import Role

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _client(claim, state):
    return Client(state.address, security=claim.security(), asynchronous=True)


async def _first_byte(port, context):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"x" * 64)
    return await reader.readexactly(1)


def _open_files(pid):
    return {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}


async def test_worker_registers_and_computes_over_tls(host, claim):
    """A forked scheduler and worker do what Dask does, over the claim's own certificates."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        assert state.address.startswith("tls://")
        assert await client.submit(sum, [1, 2, 3]) == 6


async def test_worker_tells_its_agent_that_it_is_registered(host, claim):
    """The agent hears of a worker from the worker itself too."""
    await host.up(claim, "lease-a")
    await host.until(lambda: host.state_of(claim, "lease-a").registered)


async def test_worker_with_a_known_address_needs_no_orders(host, claim):
    """A worker on another host than its scheduler's is launched with the address."""
    state = await host.up(claim)
    await host.fork_worker(claim, "lease-b", address=state.address)
    await host.until(lambda: host.is_complete(claim, ["lease-b"]))


async def test_stranger_without_certificate_is_refused(host, claim):
    """Whoever reaches a scheduler's port without the claim's certificate gets nothing."""
    state = await host.up(claim)
    port = int(state.address.rpartition(":")[2])
    context = ssl._create_unverified_context()
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        await _first_byte(port, context)


async def test_another_claims_certificate_is_refused(host, claim):
    """A claim's credentials open that claim alone."""
    other = host.a_claim()
    state = await host.up(claim)
    with pytest.raises(OSError, match=r"TLS certificate does not match|Timed out"):
        await Client(state.address, security=other.security(), asynchronous=True, timeout=2)


async def test_worker_listens_only_where_dask_does(host, claim):
    """A worker has one port, Dask's, and no HTTP server."""
    await host.up(claim, "lease-a")
    worker = psutil.Process(host.pid_of(claim, "lease-a"))
    listening = [c for c in worker.net_connections() if c.status == psutil.CONN_LISTEN]
    assert len(listening) == 1
    assert listening[0].laddr.ip == "127.0.0.1"


async def test_scheduler_listens_for_dask_and_dashboard_on_its_address_alone(host, claim):
    """A scheduler has two ports, both on the address it was given."""
    state = await host.up(claim)
    scheduler = psutil.Process(host.pid_of(claim))
    listening = {
        c.laddr.port: c.laddr.ip
        for c in scheduler.net_connections()
        if c.status == psutil.CONN_LISTEN
    }
    assert set(listening) == {int(state.address.rpartition(":")[2]), state.dashboard_port}
    assert set(listening.values()) == {"127.0.0.1"}


async def test_children_draw_different_random_numbers(host, claim):
    """A fork copies the generators' state; every child has fresh ones."""

    def draw():
        return random.random(), np.random.random()  # noqa: NPY002 - the global one is tested

    state = await host.up(claim, "lease-a", "lease-b")
    async with _client(claim, state) as client:
        drawn = await client.run(draw)
    first, second = drawn.values()
    assert first[0] != second[0]
    assert first[1] != second[1]


async def test_worker_keeps_no_descriptor_of_the_zygote(host, claim):
    """A child lets go of the zygote's socket to the agent and of its launch."""
    await host.up(claim, "lease-a")
    opened = _open_files(host.pid_of(claim, "lease-a"))
    assert not any("gpupool-launch" in target for target in opened)
    shared = opened & _open_files(host.zygotes.pids[0])
    assert not {target for target in shared if target.startswith("socket:")}


async def test_worker_is_its_own_session_in_the_claims_folder(host, claim):
    """Nothing that ends a zygote's or agent's session reaches a worker."""
    await host.up(claim, "lease-a")
    pid = host.pid_of(claim, "lease-a")
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").readlink() == claim.folder  # noqa: ASYNC240 - not a disk


async def test_claims_variables_reach_its_tasks(host, claim):
    """What a launch sets is what its tasks see; the agent puts the claim's ids there."""
    state = await host.up(claim, "lease-a", env={"MY_SETTING": "42"})
    async with _client(claim, state) as client:
        seen = await client.submit(lambda: dict(os.environ))
    assert seen["MY_SETTING"] == "42"


async def test_simulated_worker_runs_dask_cudas_host_file(host, claim):
    """A simulated device still gets dask-cuda's own spilling store, with the device's sizes."""

    def store(dask_worker):
        data = dask_worker.data
        return type(data).__module__, data.device_buffer.fast.n

    state = await host.up(claim, "lease-a", device_memory_bytes=1000)
    async with _client(claim, state) as client:
        (found,) = (await client.run(store)).values()
    assert found == ("dask_cuda.device_host_file", 800)


async def test_sixty_quick_forks_all_succeed(host, claim):
    """The zygote can be forked from again and again, with children coming and going."""
    state = await host.up(claim)
    for number in range(60):
        await host.fork_worker(claim, f"lease-{number}", address=state.address)
        if number % 6 == 5:
            mine = [f"lease-{n}" for n in range(number - 5, number + 1)]
            await host.until(lambda mine=mine: host.is_complete(claim, mine))
            for lease in mine:
                os.kill(host.pid_of(claim, lease), 9)
            await host.until(lambda: host.is_complete(claim, []))
    assert len(host.zygotes.pids) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"protocol": "ucxx"}, "needs the package distributed-ucxx"),
        ({"pre_import": ("no_such_module",)}, "No module named 'no_such_module'"),
        ({"device_memory_limit": "many"}, "many"),
    ],
)
async def test_failure_to_start_is_the_logs_last_line(host, claim, options, sentence):
    """Whatever keeps a worker from starting, its last line says so and its exit code is not 0."""
    launch = host.launch(claim, Role.WORKER, "lease-a", address="tls://127.0.0.1:1", **options)
    await host.fork(launch)
    assert await host.end_of(claim, "lease-a") == 1
    last = host.log_of(launch).read_text().splitlines()[-1]
    assert last.startswith("The worker cannot start: ")
    assert sentence in last


async def test_missing_folder_is_said_in_a_sentence(host, claim):
    """A claim's folder that is gone is no traceback."""
    claim.folder.rmdir()
    launch = host.launch(claim, Role.SCHEDULER, "")
    await host.fork(launch)
    assert await host.end_of(claim) == 1
    text = host.log_of(launch).read_text()
    assert text.startswith(f"The scheduler cannot start: its folder {claim.folder}")


async def test_temporary_files_go_where_the_claims_others_are(host, claim):
    """By the name that its launch gives that folder; its own variables may say otherwise."""
    folder = claim.folder / "tmp"
    state = await host.up(claim, "lease-a", temporary=str(folder))
    async with Client(state.address, security=claim.security(), asynchronous=True) as client:
        assert await client.submit(tempfile.gettempdir) == str(folder)
        own = {"TMPDIR": "/var/tmp"}
        await host.fork_worker(
            claim, "lease-b", address=state.address, temporary=str(folder), env=own
        )
        await client.wait_for_workers(2)
        said = await client.submit(tempfile.gettempdir, workers=["lease-b"], pure=False)
        assert said == "/var/tmp"
