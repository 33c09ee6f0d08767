"""Fixtures of the whole-process scenarios: pools that always clean up, and the run's seed."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from e2e_harness.devices import SimulatedDevices, StubDevices, TestDevices
from e2e_harness.fault_case import Stage
from e2e_harness.running_pool import MakePool, RunningPool, Setup
from e2e_harness.seeding import ROUNDS, SEED
from stubs.build import NoCompiler, build


def pytest_report_header() -> str:
    """Say the seed before anything can fail."""
    return f"e2e: GPUPOOL_E2E_SEED={SEED} GPUPOOL_E2E_ROUNDS={ROUNDS}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder starts whole processes."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


_pools: list[RunningPool] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure what repeats it, and the ends of all logs: an assertion seldom says enough.

    The seed stands with the failure itself, for the process that prints the summary of a run in
    several processes has not loaded this file.
    """
    report = yield
    if report.failed:
        report.sections.append(("to repeat it", f"GPUPOOL_E2E_SEED={SEED}"))
        report.sections += [(f"logs of {pool.folder}", pool.logs()) for pool in _pools]
    return report


@pytest.fixture(scope="session")
def folders() -> Iterator[Callable[[], Path]]:
    """Short private folders: the path of a Unix socket has to fit in 107 bytes."""
    made: list[Path] = []

    def make() -> Path:
        made.append(Path(tempfile.mkdtemp(prefix="gpupool-e2e-")))
        return made[-1]

    yield make
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def make_pool(folders: Callable[[], Path]) -> Iterator[MakePool]:
    """Start pools; each is checked and ended with the module."""

    def make(devices: TestDevices, setup: Setup | None = None) -> RunningPool:
        _pools.append(RunningPool(folders(), devices, setup))
        return _pools[-1]

    yield make
    while _pools:
        _pools.pop().close()


@pytest.fixture(scope="module")
def stubs(folders: Callable[[], Path]) -> Callable[[int], StubDevices]:
    """Make stub devices; skips where there is no C compiler."""
    try:
        build()
    except NoCompiler as error:
        pytest.skip(str(error))
    return lambda count: StubDevices(folders(), count)


@pytest.fixture(scope="module")
def devices(folders: Callable[[], Path], request: pytest.FixtureRequest) -> Callable[[int], object]:
    """Make stub devices, or simulated ones where there is no C compiler."""
    if shutil.which("cc") is None:
        return SimulatedDevices
    return request.getfixturevalue("stubs")


@pytest.fixture(scope="module")
def pool(make_pool: MakePool, devices: Callable[[int], TestDevices]) -> RunningPool:
    """A pool of four devices that the module's scenarios share."""
    return make_pool(devices(4)).start()


@pytest.fixture(scope="module")
def stage(make_pool: MakePool, devices: Callable[[int], TestDevices]) -> Iterator[Stage]:
    """What the cases of a module of faults share."""
    found = Stage(make_pool, devices)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _promises(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each scenario on the shared pool: nothing shared, nothing forgotten."""
    yield
    if "pool" in request.fixturenames:
        request.getfixturevalue("pool").check()


@pytest.fixture
def as_root() -> None:
    """Skip what only root may set up."""
    if os.geteuid() != 0:
        pytest.skip("needs root: another user, a mount or a limit")
