"""Hands a `Launch` over in a sealed memory file: it is on no disk, and the zygote need not read it.

Called by `zygotes`.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from jupyter_gpupool.protocol.launch import Launch

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@contextmanager
def launch_file(launch: Launch) -> Iterator[int]:
    """A descriptor of a memory file that holds the launch, closed at the end."""
    descriptor = os.memfd_create("gpupool-launch", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.fchmod(descriptor, 0o600)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(launch.encode())
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        yield descriptor
    finally:
        os.close(descriptor)
