"""No process of one claim, and no zygote, ever holds another claim's secret."""

import contextlib
import os
import re
from pathlib import Path

import pytest

from jupyter_gpupool.protocol.keeping import HOLDER_NAME
from jupyter_gpupool.protocol.launch import Role

from .hibernating import client_of, hibernate

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may read other processes' memory"),
]
_CHUNK_BYTES = 16 * 1024 * 1024


def _holds(pid: int, secret: bytes) -> bool:
    """Whether a process's readable memory has these bytes anywhere."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
            if found and _range_holds(memory, int(found[1], 16), int(found[2], 16), secret):
                return True
    return False


def _range_holds(memory, start: int, stop: int, secret: bytes) -> bool:
    for position in range(start, stop, _CHUNK_BYTES):
        try:
            memory.seek(position)
            if secret in memory.read(min(_CHUNK_BYTES + len(secret), stop - position)):
                return True
        except (OSError, ValueError, OverflowError):
            return False
    return False


def _shown(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()


def _body_of(key: str) -> bytes:
    return key.splitlines()[1].encode()


async def test_first_claims_key_is_in_its_own_process_only(host, claim):
    """A later claim's processes and the zygote are searched for an earlier claim's keys."""
    second = host.a_claim()
    await host.up(claim, "lease-a")
    await host.up(second, "lease-b")
    secret = _body_of(claim.secrets.worker.key)
    others = [host.pid_of(second), host.pid_of(second, "lease-b"), *host.zygotes.pids]
    assert _holds(host.pid_of(claim, "lease-a"), secret)
    assert not any(_holds(pid, secret) for pid in others)
    host.kill_all(second)


async def test_no_key_is_on_disk_or_in_a_log(host, claim):
    """Certificates are loaded from memory; neither the folder, a log nor /tmp sees a key."""
    await host.up(claim, "lease-a")
    written = [*claim.folder.rglob("*"), *host.folder.glob("*.log")]
    assert not any("PRIVATE KEY" in path.read_text() for path in written if path.is_file())


def _files_in(folder):
    """What is in the files that are there; a worker that has let go is still tidying up."""
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()


async def test_holder_shows_and_writes_no_key(host, claim):
    """Results go to files there, keys never; its arguments and environment hold none."""
    state = await host.up(claim, "lease-a")
    secret = _body_of(claim.secrets.worker.key)
    async with client_of(claim, state) as client:
        held = await client.scatter(["a result" * 1000])
        await hibernate(host, claim, memory_bytes=0)
        assert len(held) == 1
        written = dict(_files_in(claim.folder))
        assert any(path.parent.name == "results" for path in written)
        assert not any(secret in content for content in written.values())
        assert secret not in _shown(host.pid_of(claim, HOLDER_NAME))


async def test_launch_is_in_neither_arguments_nor_environment(host, claim):
    """What `ps` shows of a worker holds no secret."""
    launch = host.launch(claim, Role.WORKER, "lease-a", env={"MY_SECRET": "tell-nobody"})
    await host.fork(launch)
    pid = host.pid_of(claim, "lease-a")
    shown = _shown(pid)
    assert b"tell-nobody" not in shown
    assert _body_of(launch.tls.key) not in shown
