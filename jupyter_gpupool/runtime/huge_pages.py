"""Gathers the zygote's memory into huge pages: a fork copies one entry in place of five hundred.

Called by `warming` last of all. It halves what a fork costs the zygote. The kernel does it since
6.1; an older one refuses, and nothing else changes.
"""

import ctypes
from collections.abc import Iterator
from pathlib import Path

_HUGE_BYTES = 2 * 1024 * 1024
_MADV_COLLAPSE = 25
_libc = ctypes.CDLL(None)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def gather() -> int:
    """Do so once. The memory is not marked: children's own grows in small pages as ever.

    Returns:
        How many huge pages were made.
    """
    lines = Path("/proc/self/maps").read_text().splitlines()
    pages = [page for line in lines for page in huge_pages_of(line)]
    return sum(_libc.madvise(page, _HUGE_BYTES, _MADV_COLLAPSE) == 0 for page in pages)


def huge_pages_of(line: str) -> Iterator[int]:
    """Where whole huge pages fit into a range of private memory, given its line in `maps`."""
    extent, rights, _, _, inode, *name = line.split()
    if rights != "rw-p" or inode != "0" or name not in ([], ["[heap]"]):
        return
    first, end = (int(address, 16) for address in extent.split("-"))
    start = -(-first // _HUGE_BYTES) * _HUGE_BYTES
    yield from range(start, end - _HUGE_BYTES + 1, _HUGE_BYTES)
