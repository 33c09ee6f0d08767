"""Lets every test say `from stubs.state import StubState`, and offers the stubs as fixtures."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stubs.build import NoCompiler, StubLibraries, build
from stubs.state import StubState


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
