"""Memory sizes of a worker's own device, worked out from what the agent knows of it: pure.

Called by `cuda_parts`. dask-cuda resolves "0.8" and "default" by NVML index, which is another
device's for a fraction of an RMM pool, and the parent GPU's for a MIG instance.
"""

from collections.abc import Callable

_DEFAULT_SHARE = 0.8
"""What dask-cuda takes for "default"."""


def device_limit_bytes(limit: str, device_bytes: int, parse: Callable[[str], int]) -> int | None:
    """How much of its device a worker fills before it spills; None is without bound.

    Args:
        limit: As dask-cuda takes it: "default", "auto", "0.8" of the device, a size, "0".
        device_bytes: The device's own memory.
        parse: Reads a size such as "10GiB".
    """
    if limit == "default":
        return int(device_bytes * _DEFAULT_SHARE)
    if limit == "auto":
        return device_bytes
    share = _share(limit)
    amount = parse(limit) if share is None else int(device_bytes * share)
    return amount or None


def size_or_share(size: str | None, device_bytes: int) -> str | int | None:
    """A size as it is; a share of the device, such as "0.5", as bytes of this very device."""
    share = None if size is None else _share(size)
    # RMM wants its pools in steps of 256 bytes.
    return size if share is None else int(device_bytes * share) // 256 * 256


def _share(text: str) -> float | None:
    # "1" is a byte, "1.0" the whole device: so dask-cuda has it.
    try:
        value = float(text)
    except ValueError:
        return None
    return value if "." in text and 0.0 < value <= 1.0 else None
