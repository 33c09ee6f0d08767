"""The Python that a claim is used from, for the pool to set against its environments.

Called by `claim` and `terms`.
"""

import sys
from functools import lru_cache

from jupyter_gpupool.client.this_host import ThisHost
from jupyter_gpupool.protocol.using import UsedFrom
from jupyter_gpupool.protocol.versions import read_versions


@lru_cache(maxsize=1)
def used_from() -> UsedFrom:
    """This Python; read once, for looking it up costs milliseconds."""
    return UsedFrom(
        versions=read_versions(), interpreter=sys.executable or "", host=ThisHost.read().mark
    )
