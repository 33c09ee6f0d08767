"""Room, rights and kind of the disk below a pool's folders."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpupool.cli.doctor.disks import DiskFacts, judge_disk, look_at_disk
from jupyter_gpupool.cli.doctor.finding import Finding, Severity
from jupyter_gpupool.cli.doctor.places import Kind, Place

GIB = 2**30
PLACE = Place(Kind.STATE, Path("/state"))
ROOMY = DiskFacts(
    place=PLACE, free_bytes=50 * GIB, bytes=100 * GIB, free_files=10**6, files=2 * 10**6
)
_needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB and 512 files."""
    options = "size=16m,nr_inodes=512"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", tmp_path], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def judged(facts: DiskFacts) -> Finding:
    (found,) = judge_disk(facts)
    return found


def seen(folder: Path, kind: Kind = Kind.RUNTIME) -> Finding:
    return judged(look_at_disk(Place(kind, folder / "not" / "made" / "yet")))


@pytest.mark.parametrize(
    ("free_bytes", "reference"),
    [
        (2 * GIB, "state-folder-disk"),
        (GIB - 1, "state-folder-disk-nearly-full"),
        (99 * 2**20, "state-folder-disk-full"),
    ],
)
def test_room_is_judged_by_what_is_free(free_bytes: int, reference: str):
    """Less than 1 GiB is a warning, less than 100 MiB a problem."""
    assert judged(replace(ROOMY, free_bytes=free_bytes)).reference == reference


@pytest.mark.parametrize(
    ("free_files", "severity"), [(9_999, Severity.WARNING), (999, Severity.PROBLEM)]
)
def test_files_are_judged_too(free_files: int, severity: Severity):
    """A disk with room for no more files is full."""
    assert judged(replace(ROOMY, free_files=free_files)).severity is severity


def test_a_file_system_that_counts_no_files_has_enough():
    """As btrfs."""
    assert judged(replace(ROOMY, free_files=0, files=0)).severity is Severity.WELL


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "lustre"])
def test_state_on_a_network_file_system_is_a_problem(kind: str):
    """SQLite is not safe there; elsewhere it is no matter."""
    found, _ = judge_disk(replace(ROOMY, file_system=kind))
    assert (found.reference, found.severity) == ("state-folder-on-network", Severity.PROBLEM)
    temporary = Place(Kind.TEMPORARY, Path("/tmp"))
    assert judged(replace(ROOMY, place=temporary, file_system=kind)).severity is Severity.WELL


@_needs_root
def test_a_disk_that_is_full_is_a_problem(small_disk: Path):
    """Filled for real; before, it is small and well."""
    assert seen(small_disk).severity is Severity.WELL
    (small_disk / "filling").write_bytes(bytes(16 * 2**20 - 4096 * 8))
    found = seen(small_disk)
    assert (found.reference, found.severity) == ("runtime-folder-disk-full", Severity.PROBLEM)


@_needs_root
def test_a_disk_without_inodes_is_a_problem(small_disk: Path):
    """Used up for real."""
    free = os.statvfs(small_disk).f_favail
    for number in range(free):
        (small_disk / str(number)).touch()
    assert seen(small_disk).reference == "runtime-folder-disk-out-of-inodes"


@_needs_root
def test_a_read_only_disk_is_a_problem(small_disk: Path):
    """Also for root, whom no right binds."""
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    found = seen(small_disk)
    assert (found.reference, found.severity) == ("runtime-folder-read-only", Severity.PROBLEM)


@_needs_root
def test_the_file_system_of_a_folder_is_known(small_disk: Path):
    """By what is mounted at it or above it."""
    assert look_at_disk(Place(Kind.STATE, small_disk / "x")).file_system == "tmpfs"
