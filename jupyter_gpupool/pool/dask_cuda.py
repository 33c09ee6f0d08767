"""What dask-cuda is told for each worker, from the claim's terms down to the process itself.

Standard library only: `protocol.launch` carries it into any Python environment.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskCudaOptions:
    """Options by dask-cuda's own names; None leaves dask-cuda's own default.

    Attributes:
        nthreads: Threads that run tasks in each worker.
        device_memory_limit: As dask-cuda takes it: bytes, "0.8" of the device, "default".
        pre_import: Modules each worker imports before its first task.
    """

    nthreads: int = 1
    device_memory_limit: str = "default"
    rmm_pool_size: str | None = None
    rmm_maximum_pool_size: str | None = None
    rmm_managed_memory: bool = False
    rmm_async: bool = False
    rmm_release_threshold: str | None = None
    rmm_track_allocations: bool = False
    rmm_allocator_external_lib_list: tuple[str, ...] = ()
    enable_cudf_spill: bool = False
    cudf_spill_stats: int = 0
    pre_import: tuple[str, ...] = ()
