"""Builders for tests of devices: NVML on the stubs inside this process, and a clock to turn."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ctypes import CDLL
from dataclasses import dataclass
from pathlib import Path

import pynvml
import pytest
from stubs.build import StubLibraries
from stubs.state import StubState

from jupyter_gpupool.agent.devices.lock import DeviceLocks
from jupyter_gpupool.agent.devices.nvml import NvmlDevices


@dataclass
class Clock:
    """Monotonic seconds that pass only when a test says so."""

    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gpus(
    stub_state: StubState, stub_libraries: StubLibraries, monkeypatch: pytest.MonkeyPatch
) -> StubState:
    """The state of the stub NVML that nvidia-ml-py uses in this process."""
    monkeypatch.setattr(pynvml, "nvmlLib", CDLL(str(stub_libraries.nvml)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setenv("GPUPOOL_STUB_STATE", str(stub_state.folder))
    return stub_state


@pytest.fixture
def open_nvml(clock: Clock) -> Iterator[Callable[[], NvmlDevices]]:
    """Opens NVML's devices, and closes them when the test is over."""
    with ExitStack() as stack:

        def open_() -> NvmlDevices:
            devices = NvmlDevices(clock)
            stack.callback(devices.close)
            return devices

        yield open_


@pytest.fixture
def lock_folder(tmp_path: Path) -> Path:
    return tmp_path / "locks"


@pytest.fixture
def pools(lock_folder: Path) -> Iterator[Callable[[], DeviceLocks]]:
    """Makes the locks of one more pool on this host."""
    with ExitStack() as stack:

        def another() -> DeviceLocks:
            locks = DeviceLocks(lock_folder)
            stack.callback(locks.close)
            return locks

        yield another
