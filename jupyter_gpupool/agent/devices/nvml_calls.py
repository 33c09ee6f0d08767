"""NVML's errors, sorted by what they mean for us. Called by every `nvml_*` file."""

from collections.abc import Callable
from typing import TypeVar

import pynvml

T = TypeVar("T")

NVMLError: type[Exception] = pynvml.NVMLError
GpuIsLost: type[Exception] = pynvml.NVMLError_GpuIsLost

_UNANSWERABLE: tuple[type[Exception], ...] = (
    pynvml.NVMLError_NotSupported,
    pynvml.NVMLError_FunctionNotFound,
    pynvml.NVMLError_InvalidArgument,
    pynvml.NVMLError_NoPermission,
    pynvml.NVMLError_NoData,
    pynvml.NVMLError_NotFound,
    pynvml.NVMLError_ArgumentVersionMismatch,
)
"""This device, driver or user gets no answer to this question, and all else may be well."""


def ask(call: Callable[..., T], *args: object) -> T | None:
    """Call NVML; None where it has no answer.

    Raises:
        NVMLError: If the device or the driver fails.
    """
    try:
        return call(*args)
    except _UNANSWERABLE:
        return None


def said(error: Exception) -> str:
    """What NVML said, as part of a sentence: its own words without a full stop."""
    return f"“{str(error).rstrip('.')}”"
