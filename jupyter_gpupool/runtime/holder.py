"""The holder: keeps the results of a claim that hibernates, without a device, without reading them.

Called by `child` in a process that is the claim's user already. To the claim's scheduler it is a
worker that is always paused, so that tasks wait for real ones. None of the user's code runs here:
their classes may need a device, or exist in their notebook alone.

A result counts as kept once it is here. Devices are given back at the speed of the network; what is
in memory goes to files afterwards, when nothing comes or goes.
"""

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import dask.config
from distributed.core import Status

from jupyter_gpupool.protocol.launch import HolderLaunch, Launch

from .agent_link import AgentLink
from .lease_worker import LeaseWorker
from .life import live_until_ended
from .opaque_store import CannotKeep, OpaqueStore
from .problems import CannotStart
from .protocols import check_protocol
from .worker_process import WorkerProcess, shared_options

_FOLDER = "results"
_QUIET_S = 1.0
_DISK_AGAIN_S = 30.0
_QUIETER = {
    "distributed.worker.http.routes": [],
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "1s",
    "distributed.worker.profile.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.worker.preload": [],
}
_USERS_CODE = (
    "run",
    "run_coroutine",
    "upload_file",
    "plugin-add",
    "plugin-remove",
    "actor_execute",
    "actor_attribute",
)


class Holder(LeaseWorker):
    """A worker that keeps frames as they come, and computes nothing.

    Its own state is running, for a paused worker sends to one other at a time; what its scheduler
    hears is that it is paused.
    """

    def __init__(self, *, store: OpaqueStore, **options: Any) -> None:
        self._store = store
        self._moving = 0
        self._arrived_s = 0.0
        self._settling: asyncio.Task[None] | None = None
        super().__init__(data=store, deserialize=False, **options)
        for operation in _USERS_CODE:
            self.handlers[operation] = _refuse

    def _send_worker_status_change(self, stimulus_id: str) -> None:
        status = Status.paused if self._status is Status.running else self._status
        self.batched_send(
            {"op": "worker-status-change", "status": status.name, "stimulus_id": stimulus_id}
        )

    async def plugin_add(self, *_: Any, **__: Any) -> Any:
        """Leave out the plugins that the claim's workers get."""
        return {"status": "OK"}

    async def put_away(self, fetched: Mapping[Any, Any]) -> Mapping[Any, tuple[str, str]]:
        """Keep results that its scheduler had it fetch. See `taking`."""
        new = {key: result for key, result in fetched.items() if key not in self.data}
        # In a thread, for it may write to a disk.
        kept, refused = await asyncio.to_thread(_admit, self._store, new)
        self.update_data(kept)
        self._arrived_s = time.monotonic()
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self._settle())
        return refused

    async def _take(self, source: str, keys: Collection[Any]) -> dict[str, Any]:
        with self._in_motion():
            return await super()._take(source, keys)

    async def _hand_over(self, path: str, word: bytes, keys: Collection[Any]) -> dict[str, Any]:
        with self._in_motion():
            return await super()._hand_over(path, word, keys)

    @contextlib.contextmanager
    def _in_motion(self) -> Iterator[None]:
        self._moving += 1
        try:
            yield
        finally:
            self._moving -= 1

    def _is_quiet(self) -> bool:
        still = time.monotonic() - self._arrived_s >= _QUIET_S
        return still and not self._moving and not self.transfer_outgoing_count

    async def _settle(self) -> None:
        """Have files take over from memory, one after the other, whenever it is quiet."""
        while (found := self._store.largest_in_memory()) is not None:
            if not self._is_quiet():
                await asyncio.sleep(_QUIET_S / 2)
                continue
            key, result = found
            try:
                written = await asyncio.to_thread(self._store.written, result)
            except OSError:
                # A full disk: it stays where it is. Nothing is lost, and room may be made.
                await asyncio.sleep(_DISK_AGAIN_S)
                continue
            self._store.swap(key, result, written)

    async def close(  # type: ignore[override]  # distributed's own Worker does the same
        self, *_: Any, reason: str = "worker-close", **__: Any
    ) -> str | None:
        """Close, and leave nothing on the disk."""
        if self._settling is not None:
            self._settling.cancel()
        closed = await super().close(reason=reason)
        self._store.close()
        return closed


def _refuse(**_: Any) -> None:
    raise PermissionError("This only holds the claim's results and runs no code. Name a worker.")


def run(launch: Launch) -> int:
    """Be the claim's holder until it is stopped, removed or left alone.

    Returns:
        The exit code.
    """
    check_protocol(launch.protocol)
    if launch.holder is None:
        raise CannotStart("its launch does not say what a holder has to know.")
    dask.config.set(_QUIETER)
    store = _open_store(Path(launch.folder) / _FOLDER, launch.holder)

    def build(link: AgentLink, scheduler_address: asyncio.Future[str]) -> Holder:
        return Holder(
            store=store,
            scheduler_address=scheduler_address,
            link=link,
            nthreads=1,
            memory_limit=0,
            executor="offload",
            **shared_options(launch),
        )

    return live_until_ended(WorkerProcess(launch, build).serve())


def _open_store(folder: Path, options: HolderLaunch) -> OpaqueStore:
    try:
        return OpaqueStore(
            folder, memory_bytes=options.memory_bytes, quota_bytes=options.quota_bytes
        )
    except OSError as error:
        raise CannotStart(f"its folder {folder} cannot be made: {error.strerror}.") from error


def _admit(
    store: OpaqueStore, fetched: Mapping[Any, Any]
) -> tuple[dict[Any, Any], dict[Any, tuple[str, str]]]:
    kept, refused = {}, {}
    for key, result in fetched.items():
        try:
            kept[key] = store.admit(result)
        except CannotKeep as problem:
            refused[key] = (problem.reason.value, problem.detail)
    return kept, refused
