"""What is wrong with the memory of a GPU that still answers, as sentences.

Called by `nvml.NvmlDevices` every few seconds. XID events are in `nvml_xids`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pynvml

from jupyter_gpupool.pool.units import plural

from .nvml_calls import ask

Handle = Any

_TOO_MANY_PAGES = 60
"""From here on NVIDIA takes a GPU back; fewer retired pages are healed damage."""


def memory_problems(gpu: Handle) -> tuple[str, ...]:
    """Sentences on a GPU's memory; empty is well.

    Raises:
        NVMLError: If the GPU or the driver fails.
    """
    return tuple(_ecc(gpu)) + tuple(_rows(gpu)) + tuple(_pages(gpu))


def _ecc(gpu: Handle) -> Iterator[str]:
    count = ask(
        pynvml.nvmlDeviceGetTotalEccErrors,
        gpu,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    if count:
        yield f"It had {plural(count, 'uncorrectable ECC error')} since the driver was loaded."


def _rows(gpu: Handle) -> Iterator[str]:
    rows = ask(pynvml.nvmlDeviceGetRemappedRows, gpu)
    _, _, pending, failed = rows or (0, 0, 0, 0)
    if failed:
        yield "Remapping a row of its memory failed: it has to be replaced."
    if pending:
        yield "Rows of its memory wait to be remapped: it needs a reset."


def _pages(gpu: Handle) -> Iterator[str]:
    if ask(pynvml.nvmlDeviceGetRetiredPagesPendingStatus, gpu):
        yield "Pages of its memory wait to be retired: it needs a reset."
    double = pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
    single = pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS
    retired = len([*_retired(gpu, double), *_retired(gpu, single)])
    if retired >= _TOO_MANY_PAGES:
        yield f"{plural(retired, 'page')} of its memory are retired: it has to be replaced."


def _retired(gpu: Handle, cause: int) -> Iterable[int]:
    return ask(pynvml.nvmlDeviceGetRetiredPages, gpu, cause) or []
