"""Makes the zygote warm: everything a child would import is imported once, before any fork.

Called by `zygote` alone. A module imported after the fork costs every claim its milliseconds, so
this list holds what schedulers, workers, dashboards and first tasks were seen to load.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jupyter_gpupool.protocol.launch import Warm
from jupyter_gpupool.protocol.versions import read_versions, what_lacks

from . import huge_pages, threads

# The hook of RAPIDS libraries against touching a GPU while being imported.
_QUIET = {"RAPIDS_NO_INITIALIZE": "True"}
_NEEDED = (
    "dask",
    "distributed",
    "dask_cuda",
    "dask_cuda.initialize",
    "dask_cuda.worker_common",
    "jupyter_gpupool.runtime.spare",
)
_USEFUL = (
    "numpy",
    "numpy.random",
    "dask.array",
    "dask.array.chunk",
    "dask.array.reductions",
    "dask.array.backends",
    "dask.array.numpy_compat",
    "dask.widgets",
    "distributed.versions",
    "distributed.protocol.numpy",
    "distributed.protocol.cupy",
    "distributed.http.health",
    "distributed.http.statics",
    "distributed.http.scheduler.info",
    "distributed.http.scheduler.json",
    "distributed.http.scheduler.api",
    "distributed.http.scheduler.prometheus",
    "distributed.http.worker.prometheus",
    "distributed.shuffle",
    "distributed.diskutils",
    "distributed.worker_client",
    "tornado.platform.asyncio",
    "asyncio.unix_events",
    "concurrent.futures.thread",
    "encodings.idna",
    "stringprep",
    "pwd",
)
_DASHBOARDS = "distributed.dashboard.scheduler"
_libc = ctypes.CDLL(None)
_PR_SET_NAME = 15


def warm_up(environment: Mapping[str, str]) -> Warm:
    """Import everything, and say whether forking from here is safe."""
    threads.keep_single()
    os.environ.update(_QUIET)
    problem = (
        what_lacks()
        or _import_needed()
        or _import_useful()
        or _import_asked(environment.get("GPUPOOL_PRE_IMPORT", ""))
    )
    if not problem:
        _compute_once()
    _share()
    return Warm(problem=problem, versions=read_versions())


def warm_dashboards() -> str:
    """Import what a dashboard's first page needs: as much again, which no first claim waits for.

    Returns:
        Why nothing may be forked any more, else "".
    """
    # Without it a scheduler works all the same; and versions that do not match raise anything.
    with contextlib.suppress(Exception):
        importlib.import_module(_DASHBOARDS)
    _share()
    return _threads_after(_DASHBOARDS)


def _share() -> None:
    # What exists now is shared by all children: no collection may touch, and so copy, its pages.
    gc.collect()
    gc.freeze()
    huge_pages.gather()


def name_process(name: str) -> None:
    """What `ps` and `top` show of this process; 15 letters at most."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def count_threads() -> int:
    """How many threads this process has, those of native libraries included."""
    return len(list(Path("/proc/self/task").iterdir()))


def _import_needed() -> str:
    for name in _NEEDED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return f"{name} cannot be imported there: {error}"
    return _threads_after("distributed and dask_cuda")


def _import_useful() -> str:
    for name in _USEFUL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return _threads_after("its own list of modules")


def _import_asked(names: str) -> str:
    for name in _split(names):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - an admin's module may raise anything
            return f"GPUPOOL_PRE_IMPORT names {name}, which cannot be imported: {error!r}"
        if problem := _threads_after(name):
            return problem
    return ""


def _compute_once() -> None:
    """Fill what libraries remember once they have worked it out: 80 ms of each claim's start."""
    versions: Any = importlib.import_module("distributed.versions")
    versions.get_versions()
    netutil: Any = importlib.import_module("tornado.netutil")
    # The certificates of the whole world, which tornado loads for each first accepted connection.
    netutil._client_ssl_defaults()  # noqa: SLF001 - it has no public name
    # OpenSSL sets its algorithms up for the first context.
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def _split(names: str) -> Iterable[str]:
    return filter(None, (name.strip() for name in names.split(",")))


def _threads_after(what: str) -> str:
    running = count_threads()
    if running == 1:
        return ""
    return (
        f"the zygote has {running} threads after importing {what}, so forking it is not safe:"
        " leave that module out of GPUPOOL_PRE_IMPORT."
    )
