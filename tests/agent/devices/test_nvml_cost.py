import os
import time
from collections.abc import Callable

import pytest
from stubs.state import StubState

from jupyter_gpupool.agent.devices.nvml import NvmlDevices

pytestmark = pytest.mark.stubs
SAMPLES = 50


def test_sampling_eight_devices_each_second_costs_little(
    gpus: StubState, open_nvml: Callable[[], NvmlDevices]
):
    """With a process on each it stays below 0.5 % of a core; 0.17 % is usual."""
    gpus.with_gpus(8)
    for index in range(8):
        gpus.add_process(index, os.getpid())
    devices = open_nvml()
    started_s = time.process_time()
    for _ in range(SAMPLES):
        devices.sample()
    assert (time.process_time() - started_s) / SAMPLES < 0.005
