import os
from collections.abc import Callable

import pytest
from stubs.state import GIB, NOT_SUPPORTED, ProcessKind, StubState

from jupyter_gpupool.agent.devices.nvml import NvmlDevices

pytestmark = pytest.mark.stubs
Open = Callable[[], NvmlDevices]
NO_PERMISSION = 4
ANOTHER_CONTAINERS_PID = 3_999_999_999


def test_a_sample_says_how_a_gpu_is_now(gpus: StubState, open_nvml: Open):
    """Use, memory, heat and power arrive in our units."""
    gpus.with_gpus(1)
    devices = open_nvml()
    gpus.change(0, utilisation_percent=55, used_bytes=GIB, temperature_c=71, power_mw=250_500)
    (sample,) = devices.sample()
    assert (sample.utilisation, sample.memory_used_bytes) == (0.55, GIB)
    assert (sample.temperature_c, sample.power_w) == (71, 250.5)


def test_an_instance_has_its_own_memory_and_no_use(gpus: StubState, open_nvml: Open):
    """What NVML cannot say of an instance is None, never its GPU's."""
    gpus.with_gpus(1).split(0).change(0, utilisation_percent=90, used_bytes=3 * GIB)
    gpus.add_process(gpus.gpus[0].mig[1].uuid, os.getpid(), GIB)
    first, second = open_nvml().sample()
    assert (first.utilisation, first.memory_used_bytes, first.processes) == (None, 0, ())
    assert (second.power_w, second.memory_used_bytes) == (None, GIB)
    assert [process.pid for process in second.processes] == [os.getpid()]


def test_processes_come_with_user_command_and_memory(gpus: StubState, open_nvml: Open):
    """People see who uses a device; the command is a name without arguments."""
    gpus.with_gpus(1).add_process(0, os.getpid(), 2 * GIB)
    (process,) = open_nvml().sample()[0].processes
    assert (process.pid, process.memory_bytes) == (os.getpid(), 2 * GIB)
    assert process.user
    assert process.command
    assert " -" not in process.command


def test_memory_that_nvml_cannot_say_is_none(gpus: StubState, open_nvml: Open):
    """A process of another container is seen, with what little is known of it."""
    gpus.with_gpus(1).add_process(0, ANOTHER_CONTAINERS_PID, None)
    (process,) = open_nvml().sample()[0].processes
    assert (process.pid, process.memory_bytes) == (ANOTHER_CONTAINERS_PID, None)
    assert (process.user, process.command) == ("", "")


def test_a_process_in_two_lists_comes_once_and_computes(gpus: StubState, open_nvml: Open):
    """Only a process that does nothing but draw is marked so."""
    gpus.with_gpus(1)
    gpus.add_process(0, 11, kind=ProcessKind.GRAPHICS).add_process(0, 11)
    gpus.add_process(0, 12, kind=ProcessKind.GRAPHICS).add_process(0, 13, kind=ProcessKind.MPS)
    processes = open_nvml().sample()[0].processes
    assert [(process.pid, process.graphics_only) for process in processes] == [
        (11, False),
        (12, True),
        (13, False),
    ]


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION])
def test_processes_that_nvml_cannot_list_are_unknown(gpus: StubState, open_nvml: Open, code):
    """Nobody is not the same as not known, and all else is still said."""
    gpus.with_gpus(1).change(0, processes_error=code)
    (sample,) = open_nvml().sample()
    assert (sample.processes, sample.lost, sample.memory_used_bytes) == (None, False, 0)
