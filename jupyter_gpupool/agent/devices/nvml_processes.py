"""Which processes use a device, by the names people know. Called by `nvml_sampling`."""

import pwd
from functools import lru_cache
from pathlib import Path
from typing import Any

import pynvml

from jupyter_gpupool.pool.device import DeviceProcess

from .nvml_calls import ask

Handle = Any

_CALLS = {
    kind: tuple(
        getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v{version}") for version in (3, 2)
    )
    for kind in ("Compute", "MPSCompute", "Graphics")
}
"""The newest form of each call, and the one that drivers before 510 have."""


def processes_on(handle: Handle) -> tuple[DeviceProcess, ...] | None:
    """Compute, MPS and graphics processes, by pid; one that is in several lists comes once.

    None where NVML does not list who computes: on WSL2, some virtual GPUs, in some containers.

    Raises:
        NVMLError: If the device or the driver fails.
    """
    computing = _listed(handle, "Compute")
    if computing is None:
        return None
    computing |= _listed(handle, "MPSCompute") or {}
    # A process in several lists has the same memory in each.
    used = (_listed(handle, "Graphics") or {}) | computing
    return tuple(
        _process(pid, used[pid], graphics_only=pid not in computing) for pid in sorted(used)
    )


def _listed(handle: Handle, kind: str) -> dict[int, int | None] | None:
    for call in _CALLS[kind]:
        entries = ask(call, handle)
        if entries is not None:
            return {entry.pid: entry.usedGpuMemory for entry in entries}
    return None


def _process(pid: int, memory_bytes: int | None, *, graphics_only: bool) -> DeviceProcess:
    return DeviceProcess(
        pid=pid,
        memory_bytes=memory_bytes,
        user=_user_of(pid),
        command=_command_of(pid),
        graphics_only=graphics_only,
    )


def _command_of(pid: int) -> str:
    """The program's short name. Its arguments may hold secrets and are not read."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _user_of(pid: int) -> str:
    try:
        return _user_name(Path(f"/proc/{pid}").stat().st_uid)
    except OSError:
        return ""


@lru_cache(maxsize=1024)
def _user_name(uid: int) -> str:
    # Cached, for a directory service may take long to answer.
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
