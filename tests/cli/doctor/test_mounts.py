"""The kernel's list of file systems."""

from pathlib import Path

from jupyter_gpupool.cli.doctor.mounts import Mount, all_mounts, mount_of


def test_a_name_with_a_space_is_read():
    """The kernel writes it as an octal number."""
    (mount,) = all_mounts("disk /with\\040space ext4 rw,noatime 0 0")
    assert mount == Mount(Path("/with space"), "ext4", ("rw", "noatime"))


def test_proc_is_found_where_it_is():
    """And not as a part of the disk at /."""
    assert mount_of(Path("/proc/self")).file_system == "proc"
