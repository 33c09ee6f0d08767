"""What a spare does before it knows who it is: a scheduler and a worker start once, for nobody.

Called by `spare`. A forked process shares the zygote's memory until it writes to it, and copies
each page then; and much of distributed works things out at first use. A spare has all of that
behind it when a claim comes. Nothing listens, no device is touched, no user's code runs: the two
talk within the process, and nothing of them is left afterwards, threads included.
"""

import asyncio
import gc
import logging
import tempfile
from typing import Any

import dask.config
import distributed
from distributed.diagnostics import nvml

from .claim_scheduler import ClaimScheduler

_HARMLESS = {
    "distributed.diagnostics.nvml": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Both would start a thread.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
}
_MEMORY_BYTES = 2**30


class _SilentWorker(distributed.Worker):
    """distributed's Worker without its HTTP server."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Open nothing."""


def rehearse() -> None:
    """Start and end a scheduler and a worker within this process."""
    state, owner = nvml.NVML_STATE, nvml.NVML_OWNER_PID
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory() as folder, dask.config.set(_HARMLESS):
            asyncio.run(_start_and_end(folder))
    finally:
        logging.disable(logging.NOTSET)
        # Switched off for the rehearsal alone: it would stay off for good.
        nvml.NVML_STATE, nvml.NVML_OWNER_PID = state, owner
    gc.collect()


async def _start_and_end(folder: str) -> None:
    async with (
        ClaimScheduler(protocol="inproc", dashboard=False, local_directory=folder) as scheduler,
        _SilentWorker(
            scheduler.address,
            nthreads=1,
            memory_limit=_MEMORY_BYTES,
            local_directory=folder,
            protocol="inproc",
        ),
    ):
        pass
