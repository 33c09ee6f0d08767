"""What the doctor's checks are given, and users who are not root."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from jupyter_gpupool.cli.doctor.pool_view import PoolView
from jupyter_gpupool.cli.doctor.sight import Sight
from jupyter_gpupool.pool.device import Health
from jupyter_gpupool.protocol.api import DeviceView, Role, StatusView

NOBODY = 65534
Sees = Callable[..., Sight]


@pytest.fixture
def sees() -> Sees:
    """Build what an examination sees."""

    def build(pool: PoolView | None = None, environ: Mapping[str, str] | None = None) -> Sight:
        asked: Future[PoolView] = Future()
        asked.set_result(pool or PoolView())
        return Sight(environ or {}, asked)

    return build


@pytest.fixture
def status() -> Callable[..., StatusView]:
    """Build what a pool says of itself."""

    def build(**changes: Any) -> StatusView:
        counts = dict.fromkeys(("hosts", "devices", "free", "waiting", "running", "my_claims"), 0)
        said = {"version": "1", "user": "me", "role": Role.USER, "simulated": False, "seq": 0}
        return StatusView.model_validate({**counts, **said, **changes})

    return build


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that all users can pass through, which pytest's own are not."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def as_nobody() -> Callable[[], Any]:
    """Be a user whom rights bind, which they do not bind root."""

    @contextmanager
    def become() -> Iterator[None]:
        before = os.geteuid()
        if before == 0:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(before)

    return become


@pytest.fixture
def a_device() -> Callable[..., DeviceView]:
    """Build a device of the pool."""

    def build(uuid: str = "GPU-1", **changes: Any) -> DeviceView:
        device = {"uuid": uuid, "index": 0, "model": "A100", "memory_bytes": 2**30}
        told = {"uuid": uuid, "host": "h", "host_id": "h", "device": device, "problem": ""}
        usual = {"health": Health.HEALTHY, "free": True, "leased": False}
        return DeviceView.model_validate({**told, **usual, **changes})

    return build
