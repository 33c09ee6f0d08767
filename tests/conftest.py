"""Lets every test say `from stubs.state import StubState`, and offers the stubs as fixtures."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stubs.build import NoCompiler, StubLibraries, build
from stubs.state import StubState


def pytest_collection_finish() -> None:
    """What all tests have imported by now is garbage to none: collecting passes it by."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _leaks_are_told_where_they_arise() -> Iterator[None]:
    """What a module leaves open is found at its end, and not in whoever is next to collect it."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def stub_libraries() -> StubLibraries:
    """The built stub NVML and CUDA."""
    try:
        return build()
    except NoCompiler as error:
        pytest.skip(str(error))


@pytest.fixture
def stub_state(stub_libraries: StubLibraries, tmp_path: Path) -> StubState:
    """A state without GPUs yet; give its `env()` to the processes that shall see it."""
    return StubState(tmp_path / "stub-state", stub_libraries)
