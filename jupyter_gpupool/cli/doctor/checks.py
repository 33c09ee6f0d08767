"""All that the doctor looks at, in the order in which it tells."""

from collections.abc import Iterator

from jupyter_gpupool import __version__
from jupyter_gpupool.protocol.versions import read_versions

from .device_locks import check_device_locks
from .disks import check_disks
from .environments import judge_environments
from .finding import Finding
from .folders import check_folders
from .interpreter import check_interpreter
from .jupyter import check_jupyter
from .kernels import check_kernels
from .limits import check_limits
from .machine import check_control_groups, check_loopback, check_processes
from .nvml import check_gpus
from .packages import check_packages
from .pool import judge_clock, judge_connection, judge_devices, judge_version
from .port import check_port
from .proxies import check_proxies
from .runtime_file import check_runtime_file
from .sight import Check, Group, Sight


def check_pool(sight: Sight) -> Iterator[Finding]:
    """Judge what the pool said."""
    view = sight.view()
    yield from judge_connection(view)
    yield from judge_version(view, __version__)
    yield from judge_environments(view, read_versions())
    yield from judge_clock(view)
    yield from judge_devices(view)


CHECKS = (
    Check(Group.POOL, "pool", check_pool),
    Check(Group.POOL, "runtime-file", check_runtime_file),
    Check(Group.DEVICES, "gpus", check_gpus),
    Check(Group.DEVICES, "device-locks", check_device_locks),
    Check(Group.PYTHON, "packages", check_packages),
    Check(Group.PYTHON, "interpreter", check_interpreter),
    Check(Group.JUPYTER, "jupyter", check_jupyter),
    Check(Group.JUPYTER, "kernels", check_kernels),
    Check(Group.FILES, "folders", check_folders),
    Check(Group.FILES, "disks", check_disks),
    Check(Group.MACHINE, "port", check_port),
    Check(Group.MACHINE, "limits", check_limits),
    Check(Group.MACHINE, "loopback", check_loopback),
    Check(Group.MACHINE, "processes", check_processes),
    Check(Group.MACHINE, "control-groups", check_control_groups),
    Check(Group.MACHINE, "proxies", check_proxies),
)
