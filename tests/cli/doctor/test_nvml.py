"""GPUs of this machine, as the real nvidia-ml-py sees them on the stub driver."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stubs.state import LIBRARY_NOT_FOUND, UNKNOWN_ERROR, StubState

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.nvml import (
    GpuFacts,
    Nvml,
    closed_nodes,
    count_gpus,
    judge_gpus,
)

DRIVER_NOT_LOADED, VERSION_MISMATCH = 9, 18
_ASK = """\
import json
from jupyter_gpupool.cli.doctor.nvml import check_gpus
print(json.dumps([[found.reference, found.severity.value] for found in check_gpus(None)]))
"""
Found = Callable[[StubState], Any]


@pytest.fixture
def found() -> Found:
    """What a process on this stub driver finds."""

    def look(state: StubState) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", _ASK],
            env=os.environ | state.env(),
            capture_output=True,
            check=True,
            timeout=60,
        )
        return json.loads(done.stdout)

    return look


@pytest.mark.stubs
def test_gpus_that_answer_are_well(stub_state: StubState, found: Found):
    """The driver lists them, and nothing is broken."""
    told = found(stub_state.with_gpus(2))
    assert ["gpus", "well"] in told
    assert "gpu-broken" not in [each[0] for each in told]


@pytest.mark.stubs
@pytest.mark.parametrize("code", [LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED])
def test_no_driver_on_a_machine_without_gpus_is_a_note(
    stub_state: StubState, found: Found, code: int
):
    """A private pool simulates devices there."""
    if count_gpus(Path("/sys/bus/pci/devices")):
        pytest.skip("this machine has a GPU")
    assert found(stub_state.fail(code)) == [["no-gpu", "note"]]


@pytest.mark.stubs
@pytest.mark.parametrize(
    ("code", "reference"), [(UNKNOWN_ERROR, "nvml-fails"), (VERSION_MISMATCH, "nvml-mismatch")]
)
def test_a_driver_that_fails_is_a_problem(
    stub_state: StubState, found: Found, code: int, reference: str
):
    """It is there, so somebody means to use it."""
    assert [reference, "problem"] in found(stub_state.with_gpus(1).fail(code))


@pytest.mark.stubs
def test_a_gpu_with_damaged_memory_is_a_problem(stub_state: StubState, found: Found):
    """Its neighbour is well."""
    references = [each[0] for each in found(stub_state.with_gpus(2).change(1, remap_failed=True))]
    assert (references[0], references.count("gpu-broken")) == ("gpus", 1)


def test_a_gpu_that_fell_off_the_bus_is_a_warning():
    """The driver lists fewer than are built in; the others can be used."""
    _, judged = judge_gpus(GpuFacts(nvml=Nvml.WORKS, devices=7, gpus=1, built_in=2))
    assert (judged.reference, judged.severity) == ("gpu-not-listed", Severity.WARNING)


@pytest.mark.parametrize(
    "nvml", [Nvml.NO_PACKAGE, Nvml.NO_LIBRARY, Nvml.NO_DRIVER, Nvml.NO_PERMISSION]
)
def test_a_gpu_that_cannot_be_used_is_a_problem(nvml: Nvml):
    """The sentence says that there is one, and why it is of no use."""
    (judged,) = judge_gpus(GpuFacts(nvml=nvml, built_in=1))
    assert judged.severity is Severity.PROBLEM
    assert "has 1 NVIDIA GPU, but" in judged.what


def test_a_driver_that_lists_no_gpu_of_those_built_in_is_a_problem():
    """As after one has failed at boot."""
    (judged,) = judge_gpus(GpuFacts(nvml=Nvml.WORKS, built_in=2))
    assert judged.reference == "nvml-lists-nothing"


def test_gpus_are_counted_on_the_bus(tmp_path: Path):
    """NVIDIA's alone, and not their audio devices."""
    for name, vendor, kind in (
        ("a", "0x10de", "0x030200"),
        ("b", "0x10de", "0x040300"),
        ("c", "0x8086", "0x030000"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    assert count_gpus(tmp_path) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files")
def test_a_device_file_that_is_closed_is_a_problem(open_folder: Path, as_nobody):
    """Its name is told."""
    for name, mode in (("nvidia0", 0o600), ("nvidiactl", 0o666)):
        os.mknod(open_folder / name, stat.S_IFCHR, os.makedev(1, 3))
        (open_folder / name).chmod(mode)
    with as_nobody():
        closed = closed_nodes(open_folder)
    assert closed == (open_folder / "nvidia0",)
    (judged, *_) = judge_gpus(GpuFacts(nvml=Nvml.WORKS, devices=1, closed=closed))
    assert (judged.severity, "nvidia0" in judged.what) == (Severity.PROBLEM, True)
