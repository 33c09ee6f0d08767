"""Which devices NVML knows: GPUs, and MIG instances in place of the GPUs they are cut from.

Called by `nvml.NvmlDevices` when it opens and whenever what NVML lists may have changed.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pynvml

from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.ids import DeviceUuid

from .nvml_calls import NVMLError, ask
from .nvml_topology import cpu_affinity, links_between, numa_node

Handle = Any
"""NVML's own handle, which nvidia-ml-py leaves untyped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A device with what NVML needs to be asked about it.

    Attributes:
        gpu: Handle of the whole GPU; the same as `handle` unless it is a MIG instance.
        problem: Why it cannot be leased although NVML lists it, else "".
    """

    device: Device
    handle: Handle
    gpu: Handle
    problem: str = ""

    @property
    def is_mig(self) -> bool:
        """Whether it is an instance, of which NVML tells less."""
        return self.device.parent is not None

    @property
    def gpu_uuid(self) -> DeviceUuid:
        """The whole GPU it is, or is cut from."""
        return self.device.parent or self.device.uuid


def list_devices() -> tuple[Seen, ...]:
    """Everything that answers. A GPU that is lost already is left out: it cannot even be named.

    Raises:
        NVMLError: If NVML as a whole fails.
    """
    seen = tuple(found for gpu in _gpus() for found in _parts(gpu))
    links = links_between(tuple((found.device, found.gpu) for found in seen))
    return tuple(
        replace(found, device=replace(found.device, links=links[found.device.uuid]))
        for found in seen
    )


def listed_uuids() -> tuple[DeviceUuid, ...]:
    """A cheap look at what `list_devices` would find, in its order.

    Raises:
        NVMLError: If NVML as a whole fails.
    """
    return tuple(
        DeviceUuid(pynvml.nvmlDeviceGetUUID(handle))
        for _, gpu in _gpus()
        for handle in _instances(gpu) or (gpu,)
    )


def _gpus() -> Iterator[tuple[int, Handle]]:
    lost = 0
    count = pynvml.nvmlDeviceGetCount()
    for index in range(count):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            pynvml.nvmlDeviceGetUUID(handle)
        except NVMLError:
            lost += 1
            if lost == count:
                raise
            continue
        yield index, handle


def _parts(gpu: tuple[int, Handle]) -> Iterator[Seen]:
    index, handle = gpu
    whole = _describe(handle, handle, index)
    instances = _instances(handle)
    for instance in instances:
        part = _describe(instance, handle, index)
        yield replace(part, device=replace(part.device, parent=whole.device.uuid))
    if not instances:
        problem = "It is in MIG mode without an instance, so CUDA cannot use it."
        yield replace(whole, problem=problem if _in_mig_mode(handle) else "")


def _describe(handle: Handle, gpu: Handle, index: int) -> Seen:
    device = Device(
        uuid=DeviceUuid(pynvml.nvmlDeviceGetUUID(handle)),
        index=index,
        model=ask(pynvml.nvmlDeviceGetName, handle) or "unknown model",
        memory_bytes=_memory_bytes(handle),
        numa_node=numa_node(gpu),
        cpu_affinity=cpu_affinity(gpu),
    )
    return Seen(device=device, handle=handle, gpu=gpu)


def _memory_bytes(handle: Handle) -> int:
    memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    # A GPU on the processor's own die has none to itself: it uses the host's.
    host_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(memory.total) if memory is not None else host_bytes


def _in_mig_mode(gpu: Handle) -> bool:
    mode = ask(pynvml.nvmlDeviceGetMigMode, gpu)
    return mode is not None and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE


def _instances(gpu: Handle) -> tuple[Handle, ...]:
    if not _in_mig_mode(gpu):
        return ()
    most = ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, gpu) or 0
    # Instances may have any index below the most: one that was removed leaves a hole.
    found = (ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, at) for at in range(most))
    return tuple(handle for handle in found if handle is not None)
