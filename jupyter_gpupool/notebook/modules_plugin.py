"""Makes the modules beside a notebook importable where its claim runs.

Made by `modules`, run by Dask in the claim's scheduler and workers: standard library and
distributed only. Where the very same files can be read, their folder is used, so that a later edit
counts; elsewhere a copy that came along.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin
from distributed.protocol.pickle import dumps

_log = logging.getLogger(__name__)
MOST_FILES = 2000
_SHOWN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulesBeside:
    """The modules beside a notebook.

    Attributes:
        folder: Where they are.
        fingerprint: What tells these very files from others of the same names.
        copy: A zip of them; None if they are too large to be sent.
    """

    folder: str
    fingerprint: str
    copy: bytes | None

    def make_importable(self, own_folder: str) -> str:
        """Have Python find them and return where; "" where they cannot be had."""
        place = self._place(own_folder)
        if place and place not in sys.path:
            sys.path.insert(_before_packages(), place)
            importlib.invalidate_caches()
        return place

    def _place(self, own_folder: str) -> str:
        if fingerprint(self.folder) == self.fingerprint:
            return self.folder
        if self.copy is None:
            _log.warning("The modules in %s are too large to be sent here.", self.folder)
            return ""
        path = Path(own_folder, f"modules-{self.fingerprint}.zip")
        if not path.exists():
            half = path.with_suffix(f".{os.getpid()}")
            half.write_bytes(self.copy)
            half.replace(path)
        return str(path)


class ModulesOnWorker(WorkerPlugin):
    """Makes them importable on each worker, those that come later too."""

    def __init__(self, modules: ModulesBeside) -> None:
        self._modules = modules
        self._place = ""

    def setup(self, worker: Any) -> None:
        """On a worker that starts, or is there."""
        self._place = self._modules.make_importable(worker.local_directory)

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 - Dask's own signature
        """On a worker that gets another version of them."""
        with contextlib.suppress(ValueError):
            sys.path.remove(self._place)


class ModulesOnScheduler(SchedulerPlugin):
    """Makes them importable on the scheduler, which reads task graphs, and on all its workers."""

    def __init__(self, modules: ModulesBeside) -> None:
        self._modules = modules
        folder = sha256(modules.folder.encode()).hexdigest()[:_SHOWN]
        self._worker_plugin = f"gpupool-modules-{folder}"
        self.name = f"{self._worker_plugin}-{modules.fingerprint}"

    async def start(self, scheduler: Any) -> None:
        """On the scheduler; workers get it from there, so that one message does for all."""
        self._modules.make_importable(scheduler.local_directory)
        plugin = dumps(ModulesOnWorker(self._modules))
        await scheduler.register_worker_plugin(
            None, plugin=plugin, name=self._worker_plugin, idempotent=False
        )


def fingerprint(folder: str) -> str:
    """What tells these files from others; "" if there are none, or too many."""
    try:
        seen = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in python_files(folder)]
    except OSError:
        return ""
    is_some = 0 < len(seen) <= MOST_FILES
    return sha256(repr(sorted(seen)).encode()).hexdigest()[:_SHOWN] if is_some else ""


def python_files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The sources of a folder's modules and packages, by their path in it.

    Raises:
        OSError: If it cannot be read.
    """
    for name, entry in islice(_importable(folder), MOST_FILES + 1):
        yield name, entry.stat()


def _importable(folder: str, within: str = "") -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    with os.scandir(Path(folder, within)) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            name = f"{within}/{entry.name}" if within else entry.name
            if entry.name.endswith(".py") and entry.is_file():
                yield name, entry
            elif _is_package(entry):
                yield from _importable(folder, name)


def _is_package(entry: "os.DirEntry[str]") -> bool:
    is_inside = entry.name.isidentifier() and entry.is_dir(follow_symlinks=False)
    return is_inside and Path(entry.path, "__init__.py").is_file()


def _before_packages() -> int:
    # As IPython does it: after the standard library, before what is installed.
    ends = (index for index, path in enumerate(sys.path) if path.endswith("-packages"))
    return next(ends, len(sys.path))
