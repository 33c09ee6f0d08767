"""What makes a Dask worker a dask-cuda worker, put together from dask-cuda's own public pieces.

Called by `worker`. On a simulated device only the parts run that need neither NVML nor CUDA.
"""

from dataclasses import dataclass, field
from typing import Any

from dask.utils import parse_bytes
from dask_cuda.device_host_file import DeviceHostFile
from dask_cuda.plugins import CPUAffinity, PreImport
from dask_cuda.worker_common import worker_data_function, worker_plugins

from jupyter_gpupool.protocol.launch import WorkerLaunch

from .limits import device_limit_bytes, size_or_share
from .problems import CannotStart


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaParts:
    """Arguments for distributed's Worker.

    Attributes:
        data: Where results live: device, then host, then disk.
        preload: Modules that set the process up before it registers.
    """

    data: Any
    plugins: tuple[Any, ...]
    preload: list[str] = field(default_factory=list)
    preload_argv: list[str] = field(default_factory=list)


def cuda_parts(launch: WorkerLaunch) -> CudaParts:
    """The parts for one device.

    Raises:
        CannotStart: If dask-cuda cannot use the device or refuses an option.
    """
    if launch.simulated:
        return _simulated(launch)
    try:
        return CudaParts(
            data=_data(launch),
            plugins=_plugins(launch),
            preload=["dask_cuda.initialize"],
            preload_argv=["--create-cuda-context"],
        )
    except Exception as error:
        # NVML's errors, ValueError and TypeError all come from one call for one device.
        raise CannotStart(f"dask-cuda cannot use device {launch.device}: {error}") from error


def _simulated(launch: WorkerLaunch) -> CudaParts:
    return CudaParts(data=_host_file(launch), plugins=(PreImport(list(launch.pre_import)),))


def _host_file(launch: WorkerLaunch) -> tuple[type[DeviceHostFile], dict[str, int | None]]:
    return DeviceHostFile, {
        "device_memory_limit": _device_limit_bytes(launch),
        "memory_limit": launch.memory_limit_bytes,
    }


def _data(launch: WorkerLaunch) -> Any:
    # In bytes: dask-cuda would ask the host's first device, which may be a MIG parent, or lost.
    choose = worker_data_function(
        device_memory_limit=_device_limit_bytes(launch),
        memory_limit=launch.memory_limit_bytes,
        enable_cudf_spill=launch.enable_cudf_spill,
    )
    return choose(launch.device)


def _device_limit_bytes(launch: WorkerLaunch) -> int | None:
    limit = device_limit_bytes(launch.device_memory_limit, launch.device_memory_bytes, parse_bytes)
    if not launch.is_part:
        return limit
    return min(limit or launch.device_memory_bytes, launch.device_memory_bytes)


def _most_pool_bytes(launch: WorkerLaunch) -> str | int | None:
    """How far RMM may grow: on a part of a device never beyond that."""
    most = size_or_share(launch.rmm_maximum_pool_size, launch.device_memory_bytes)
    has_pool = launch.rmm_pool_size is not None or launch.rmm_async
    if most is None and launch.is_part and has_pool:
        return size_or_share("1.0", launch.device_memory_bytes)
    return most


def _plugins(launch: WorkerLaunch) -> tuple[Any, ...]:
    device_bytes = launch.device_memory_bytes
    plugins = worker_plugins(
        device_index=launch.device,
        rmm_initial_pool_size=size_or_share(launch.rmm_pool_size, device_bytes),
        rmm_maximum_pool_size=_most_pool_bytes(launch),
        rmm_managed_memory=launch.rmm_managed_memory,
        rmm_async_alloc=launch.rmm_async,
        rmm_release_threshold=size_or_share(launch.rmm_release_threshold, device_bytes),
        rmm_log_directory=None,
        rmm_track_allocations=launch.rmm_track_allocations,
        rmm_allocator_external_lib_list=list(launch.rmm_allocator_external_lib_list) or None,
        pre_import=list(launch.pre_import),
        enable_cudf_spill=launch.enable_cudf_spill,
        cudf_spill_stats=launch.cudf_spill_stats,
    )
    if not launch.cpu_affinity:
        return tuple(plugins)
    others = (plugin for plugin in plugins if not isinstance(plugin, CPUAffinity))
    return (CPUAffinity(list(launch.cpu_affinity)), *others)
