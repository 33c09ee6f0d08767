"""What the agent does when a start fails half-way, or an agent before it left things half-done."""

import errno
import os
import pwd
import sys

from agent_harness.one_host import GIB

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.records import Records
from jupyter_gpupool.agent.seen import Stage
from jupyter_gpupool.protocol.link import Desired, ProcessPhase

LOSES_ANSWERS = f"""#!{sys.executable}
import os, socket, sys, time
from jupyter_gpupool.protocol.launch import Warm
link = socket.socket(fileno=int(sys.argv[-1]))
link.send(Warm().encode())
_, descriptors, _, _ = socket.recv_fds(link, 65536, 4)
ours, theirs = os.pipe()
if os.fork() == 0:
    os.setsid()
    link.close()
    os.dup2(descriptors[1], 1)
    print("born", flush=True)
    os.close(theirs)
    time.sleep(600)
os.close(theirs)
os.read(ours, 1)
"""


async def test_device_that_was_not_proven_free_stays_so(
    make_host, worker_seen, locked_elsewhere
) -> None:
    """Whatever the agent before knew: its successor looks for itself, and holds the lock."""
    host = make_host()
    device = host.gpu.device.uuid
    left = worker_seen(device=device, stage=Stage.FREEING, process=None, used=True)
    Records(host.folder.running, boot=procfs.boot_id()).write(left)
    host.gpu.used_bytes = 10 * GIB
    await host.start()
    host.agent.desire(Desired(generation=1))
    report = await host.until(lambda r: "in use" in r.devices[0].state.problem)
    assert report.workers[0].phase is ProcessPhase.STOPPING
    assert locked_elsewhere(device)
    host.gpu.used_bytes = 0
    await host.until(lambda r: not r.workers)
    assert not locked_elsewhere(device)


async def test_device_that_nothing_came_to_is_free_at_once(make_host, worker_seen) -> None:
    """What is on it is none of ours."""
    host = make_host()
    left = worker_seen(device=host.gpu.device.uuid, stage=Stage.FAILED, process=None)
    Records(host.folder.running, boot=procfs.boot_id()).write(left)
    host.gpu.used_bytes = 10 * GIB
    await host.start()
    host.agent.desire(Desired(generation=1))
    await host.until(lambda r: not r.workers)


async def test_host_without_zygote_says_that_it_cannot_start(make_host) -> None:
    """The manager leaves it alone until it can."""
    host = await make_host().start()
    report = await host.until(lambda r: not r.can_start)
    assert "zygote" in report.problem


async def test_start_that_finds_no_descriptor_has_its_reason(
    make_host, wanted_claim, monkeypatch
) -> None:
    """It is not left starting for ever."""

    def refuse(_: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(pwd, "getpwnam", refuse)
    host = await make_host().start()
    host.agent.desire(Desired(generation=1, claims=(wanted_claim(os_user="ann"),)))
    report = await host.until(
        lambda r: r.schedulers and r.schedulers[0].phase is ProcessPhase.FAILED
    )
    assert "Too many open files" in report.schedulers[0].problem


async def test_child_whose_answer_was_lost_is_gone_before_its_failure_is_told(
    make_host, wanted_claim
) -> None:
    """Else another one would be started beside it."""
    host = await make_host(LOSES_ANSWERS).start()
    host.agent.desire(Desired(generation=1, claims=(wanted_claim(),)))
    report = await host.until(
        lambda r: r.schedulers and r.schedulers[0].phase is ProcessPhase.FAILED
    )
    assert "gone" in report.schedulers[0].problem
    [log] = host.folder.logs.glob("*/scheduler.log")
    assert not [pid for pid in host.marked() if str(log) in procfs.output_of(pid)]
    assert log.read_text() == "born\n"
