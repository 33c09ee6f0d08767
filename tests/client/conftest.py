"""Builders for tests of the client: addresses, answers, a manager's end of the wire."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.server import ServerConnection, serve

from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.this_host import ThisHost, started_at

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)


@pytest.fixture
def address() -> PoolAddress:
    return PoolAddress(url="http://127.0.0.1:9", token="gpt_secret")


@pytest.fixture
def problem() -> Callable[..., httpx.Response]:
    """Build an answer that is an RFC 9457 problem."""

    def build(status: int, reference: str, **more: Any) -> httpx.Response:
        body = {
            "type": f"urn:gpupool:problem:{reference}",
            "title": "Title",
            "status": status,
            "detail": "What happened.",
            **more,
        }
        return httpx.Response(status, json=body)

    return build


@pytest.fixture
def event() -> Callable[..., str]:
    """Build an event as the stream writes it."""

    def build(seq: int, *, claim_id: str = "c-1", kind: str = "claim.running") -> str:
        about = {"seq": seq, "at": NOW.isoformat(), "kind": kind, "claim_id": claim_id}
        return json.dumps({**about, "reason": f"event {seq}"})

    return build


@pytest.fixture
def said_by_us() -> dict[str, Any]:
    """What a manager would say of itself that is this very process."""
    host = ThisHost.read()
    return {
        "url": "http://127.0.0.1:9",
        "token": "gpt_secret",
        "manager_pid": os.getpid(),
        "manager_started": started_at(os.getpid()),
        "host": host.mark,
        "boot_id": host.boot_id,
        "uid": host.uid,
        "started": NOW.isoformat(),
    }


@pytest.fixture
def runtime_file(tmp_path: Path, said_by_us: dict[str, Any]) -> Callable[..., Path]:
    """Write a runtime file."""

    def write(*, mode: int = 0o600, **changes: Any) -> Path:
        path = tmp_path / "gpupool.json"
        path.write_text(json.dumps({**said_by_us, **changes}))
        path.chmod(mode)
        return path

    return write


Talk = Callable[[ServerConnection], Awaitable[None]]


@pytest.fixture
def streaming() -> Callable[[Talk], Any]:
    """Serve WebSockets on loopback: each connection is handed to `talk`; yields the address."""

    @asynccontextmanager
    async def run(talk: Talk, **more: Any) -> AsyncIterator[PoolAddress]:
        async with serve(talk, "127.0.0.1", 0, **more) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            yield PoolAddress(url=f"http://127.0.0.1:{port}", token="gpt_secret")

    return run
