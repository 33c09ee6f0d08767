"""A real pool for the notebook's tests: manager, agent and eight simulated devices, shared."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.protocol.api import ClaimView, LeaseView
from jupyter_gpupool.protocol.warned import WarningView

DEVICES = 8
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPool]:
    """The pool's processes."""
    folder = tmp_path_factory.mktemp("pool")
    with EmbeddedPool(folder, options=(f"--simulated={DEVICES}",)) as embedded:
        yield embedded


@pytest.fixture(scope="session")
def pool(embedded: EmbeddedPool) -> Iterator[Pool]:
    """The pool as this process knows it, once its devices are there."""
    assert embedded.address is not None
    pool = Pool(embedded.address)
    wait_for_devices(pool)
    yield pool
    pool.background.run(lambda _say: pool.close())


@pytest.fixture
def view_of(pool: Pool) -> Callable[[str], ClaimView]:
    """A claim as the manager sees it."""
    return lambda claim_id: pool.background.run(lambda _say: pool.client.claim(claim_id))


@pytest.fixture
def script_environment(embedded: EmbeddedPool) -> dict[str, str]:
    """The environment of a script that uses the pool."""
    assert embedded.address is not None
    own = {"GPUPOOL_URL": embedded.address.url, "GPUPOOL_TOKEN": embedded.address.token}
    return {**os.environ, **own, "PYTHONWARNINGS": "default"}


@pytest.fixture
def another_pool(tmp_path: Path) -> Iterator[tuple[EmbeddedPool, Pool]]:
    """A pool of the test's own, to be broken."""
    with EmbeddedPool(tmp_path, options=("--simulated=2",)) as embedded:
        assert embedded.address is not None
        pool = Pool(embedded.address)
        wait_for_devices(pool)
        yield embedded, pool
        pool.background.run(lambda _say: pool.close())


def wait_for_devices(pool: Pool, within_s: float = 30) -> None:
    eventually(
        lambda: pool.background.run(lambda _say: pool.client.status()).devices,
        within_s,
        "a device has joined",
    )


@pytest.fixture
def a_view() -> Callable[..., ClaimView]:
    """Build a claim as the manager shows it; a running one unless said otherwise."""

    def build(**changes: Any) -> ClaimView:
        return ClaimView.model_validate(
            {
                **dict.fromkeys(("id", "name", "owner", "reason"), "mine"),
                **dict.fromkeys(("phase_since", "created_at", "started_at"), NOON),
                "model": "",
                "phase": "running",
                "priority": "interactive",
                "workers": {"min": 1, "max": 1},
                "seq": 1,
                **changes,
            }
        )

    return build


@pytest.fixture
def a_lease() -> Callable[..., LeaseView]:
    """Build a lease on a host; its worker runs unless said otherwise."""

    def build(host: str, **changes: Any) -> LeaseView:
        return LeaseView.model_validate(
            {
                **dict.fromkeys(("id", "reason"), "l-1"),
                **dict.fromkeys(("host", "host_id"), host),
                "device": "GPU-0001",
                "model": "A100",
                "phase": "running",
                "granted_at": NOON,
                "restarts": 0,
                **changes,
            }
        )

    return build


@pytest.fixture
def a_warning() -> Callable[..., WarningView]:
    """Build a warning of idleness, due at 14:20, that may be kept for two hours."""

    def build(**changes: Any) -> WarningView:
        return WarningView.model_validate(
            {
                "rule": "all",
                "deadline": NOON.replace(hour=14, minute=20),
                "reason": "Long.",
                "action": "hibernate",
                "devices": "2 A100",
                "are_several": True,
                "why": "Your 2 A100 have been idle for 15 min (no tasks, GPU 0 %, 31 GiB held).",
                "keep": {"longest_s": 7200},
                **changes,
            }
        )

    return build
