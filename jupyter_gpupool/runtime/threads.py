"""Keeps numerical libraries to one thread in the zygote, and says what its children may use.

Called by `warming` before anything is imported, and by `child` after the fork. A forked copy of a
process with threads may deadlock, so the zygote has none. A worker keeps one BLAS thread unless
its claim's `env` asks for more: the same default that dask's own Nanny gives its workers.
"""

import contextlib
import importlib
import os
from collections.abc import Mapping
from typing import Any

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_original: dict[str, str] = {}


def keep_single() -> None:
    """Make libraries that are loaded from now on start no thread of their own."""
    for name in VARIABLES:
        if name in os.environ:
            _original[name] = os.environ[name]
        os.environ[name] = "1"


def allow(env: Mapping[str, str]) -> None:
    """Give a child the threads its claim or its host asked for.

    The variables reach what it starts itself. Libraries the zygote has loaded already have read
    theirs; they are told through threadpoolctl where the environment has it.
    """
    wanted = {name: env.get(name, _original.get(name, "1")) for name in VARIABLES}
    os.environ.update(wanted)
    most = max((int(value) for value in wanted.values() if value.isdecimal()), default=1)
    if most > 1:
        with contextlib.suppress(ImportError):
            pools: Any = importlib.import_module("threadpoolctl")
            pools.threadpool_limits(limits=most)
