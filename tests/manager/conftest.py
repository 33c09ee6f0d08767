"""Fixtures of the manager's tests: a pool in virtual time, and the real thing behind HTTP."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from manager_harness.idle_player import IdlePlayer, a_running_claim
from manager_harness.pool_player import PoolPlayer
from manager_harness.pool_player import start_pool as start_virtual_pool
from manager_harness.processes import Manager
from manager_harness.site import Site
from manager_harness.virtual_time import ManualClock

from jupyter_gpupool.manager.api.application import make_application
from jupyter_gpupool.manager.api.parts import Parts
from jupyter_gpupool.manager.auth.sessions import Sessions
from jupyter_gpupool.manager.auth.tokens import TokenAuthenticator
from jupyter_gpupool.manager.clock import Clock
from jupyter_gpupool.manager.metrics import Metrics
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.service.timer import Timer
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.manager.store.sealing import load_seal
from jupyter_gpupool.manager.store.store import Store


@pytest.fixture
def manual_clock() -> ManualClock:
    """Both clocks, turned by hand."""
    return ManualClock()


@pytest.fixture
def start_pool() -> Callable[[], object]:
    """Starts pools, for tests that need many."""
    return start_virtual_pool


@pytest.fixture
async def pool() -> AsyncIterator[PoolPlayer]:
    """A pool without hosts."""
    player = await start_virtual_pool()
    yield player
    await player.service.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A site without hosts."""
    seal, clock = load_seal(tmp_path / "secret-key"), Clock()
    store = Store(f"sqlite:///{tmp_path / 'manager.sqlite'}", seal)
    service = Service(store, Settings(), clock)
    await service.start()
    timer, authenticator = Timer(service), TokenAuthenticator(service.books, clock)
    timer.start()
    parts = Parts(
        service=service,
        authenticator=authenticator,
        sessions=Sessions(clock, authenticator),
        seal=seal,
        metrics=Metrics(service),
        asked_s=0.0,
    )
    yield Site(parts, make_application(parts), tmp_path)
    await timer.close()
    await service.close()
    store.close()


@pytest.fixture
def start_manager(tmp_path: Path) -> Iterator[Callable[..., Manager]]:
    """Starts managers, and ends what is left of them."""
    started: list[Manager] = []

    def start_one(*options: str, folder: Path = tmp_path) -> Manager:
        folder.mkdir(exist_ok=True)
        started.append(Manager(folder, *options))
        return started[-1]

    yield start_one
    for manager in started:
        if manager.process.poll() is None:
            # Killed, an embedded one would leave its agent for ten minutes.
            manager.end()


@pytest.fixture
async def idler(tmp_path: Path) -> AsyncIterator[IdlePlayer]:
    """A claim of two devices of a pool with a real database and without any rule."""
    store = Store(f"sqlite:///{tmp_path / 'manager.sqlite'}", load_seal(tmp_path / "secret-key"))
    time = ManualClock()
    service = Service(store, Settings(), time.clock())
    await service.start()
    yield await a_running_claim(PoolPlayer(service, store, time))
    await service.close()
    store.close()
