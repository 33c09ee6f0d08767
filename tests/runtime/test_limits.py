"""Sizes of a device's memory: pure."""

import pytest
from dask.utils import parse_bytes

from jupyter_gpupool.runtime.limits import device_limit_bytes, size_or_share


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("default", 800),
        ("auto", 1000),
        ("0.5", 500),
        ("1.0", 1000),
        ("1", 1),
        ("300 B", 300),
        ("1KiB", 1024),
        ("0", None),
        ("0.0", None),
    ],
)
def test_device_limit_is_of_the_device_itself(limit, expected):
    """dask-cuda's words mean shares of this very device."""
    assert device_limit_bytes(limit, 1000, parse_bytes) == expected


@pytest.mark.parametrize(
    ("size", "expected"), [(None, None), ("2GB", "2GB"), ("0.5", 512), ("1", "1")]
)
def test_only_shares_become_bytes(size, expected):
    """A plain size is RMM's to read; a share needs to know its device."""
    assert size_or_share(size, 1024 + 100) == expected
