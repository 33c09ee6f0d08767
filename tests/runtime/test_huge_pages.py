"""Which memory is gathered into huge pages."""

import pytest

from jupyter_gpupool.runtime.huge_pages import huge_pages_of

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("line", "pages"),
    [
        pytest.param("00300000-00900000 rw-p 00000000 00:00 0", [4 * MIB, 6 * MIB], id="within"),
        pytest.param("00200000-00400000 rw-p 0 00:00 0 [heap]", [2 * MIB], id="exactly one"),
        pytest.param("00300000-00500000 rw-p 0 00:00 0", [], id="none fits"),
        pytest.param("00200000-00400000 r-xp 0 00:00 0", [], id="not written to"),
        pytest.param("00200000-00400000 rw-p 0 08:01 42 /lib/x.so", [], id="a file's"),
        pytest.param("00200000-00400000 rw-p 0 00:00 0 [stack]", [], id="the stack"),
    ],
)
def test_only_whole_pages_of_private_memory_are_taken(line, pages):
    """Nothing outside the range, and nothing that belongs to a file or the stack."""
    assert list(huge_pages_of(line)) == pages
