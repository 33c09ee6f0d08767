"""What is wrong with a device that still answers: memory errors and XID events, as sentences.

Called by `nvml.NvmlDevices`: XID events with each sample, the slower questions every few seconds.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pynvml

from jupyter_gpupool.pool.ids import DeviceUuid
from jupyter_gpupool.pool.units import plural

from .nvml_calls import NVMLError, ask
from .nvml_listing import Seen

Handle = Any

CAUSED_BY_PROGRAMS = frozenset({13, 31, 43, 45, 68, 109})
"""XIDs that a faulty program causes on a sound GPU: its error, no reason to stop leasing."""
_MOST_EVENTS = 100
_TOO_MANY_PAGES = 60
"""From here on NVIDIA takes a GPU back; fewer retired pages are healed damage."""
_NAMES = {
    48: "uncorrectable memory error",
    63: "row remapping was recorded",
    64: "row remapping failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    92: "many single-bit memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "GPU system processor timed out",
    120: "GPU system processor error",
}


def memory_problems(gpu: Handle) -> tuple[str, ...]:
    """Sentences on a GPU's memory; empty is well.

    Raises:
        NVMLError: If the GPU or the driver fails.
    """
    return tuple(_ecc(gpu)) + tuple(_rows(gpu)) + tuple(_pages(gpu))


def _ecc(gpu: Handle) -> Iterator[str]:
    count = ask(
        pynvml.nvmlDeviceGetTotalEccErrors,
        gpu,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    if count:
        yield f"It had {plural(count, 'uncorrectable ECC error')} since the driver was loaded."


def _rows(gpu: Handle) -> Iterator[str]:
    rows = ask(pynvml.nvmlDeviceGetRemappedRows, gpu)
    _, _, pending, failed = rows or (0, 0, 0, 0)
    if failed:
        yield "Remapping a row of its memory failed: it has to be replaced."
    if pending:
        yield "Rows of its memory wait to be remapped: it needs a reset."


def _pages(gpu: Handle) -> Iterator[str]:
    if ask(pynvml.nvmlDeviceGetRetiredPagesPendingStatus, gpu):
        yield "Pages of its memory wait to be retired: it needs a reset."
    double = pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
    single = pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS
    retired = len([*_retired(gpu, double), *_retired(gpu, single)])
    if retired >= _TOO_MANY_PAGES:
        yield f"{plural(retired, 'page')} of its memory are retired: it has to be replaced."


def _retired(gpu: Handle, cause: int) -> Iterable[int]:
    return ask(pynvml.nvmlDeviceGetRetiredPages, gpu, cause) or []


class XidWatch:
    """Remembers the XID errors that each GPU had since the watch began."""

    def __init__(self) -> None:
        self._events: Any = None
        self._seen: dict[DeviceUuid, dict[int, None]] = {}

    def watch(self, devices: Iterable[Seen]) -> None:
        """Listen to these devices' GPUs from now on; what was seen before is kept.

        Raises:
            NVMLError: If the driver fails.
        """
        self._events = ask(pynvml.nvmlEventSetCreate)
        if self._events is None:
            return
        whole = {found.device.parent or found.device.uuid: found.gpu for found in devices}
        for gpu in whole.values():
            ask(
                pynvml.nvmlDeviceRegisterEvents, gpu, pynvml.nvmlEventTypeXidCriticalError,
                self._events,
            )  # fmt: skip

    def collect(self) -> None:
        """Take in the events that have come. Never waits."""
        for _ in range(_MOST_EVENTS):
            event = self._next()
            if event is None:
                return
            if event.eventData not in CAUSED_BY_PROGRAMS:
                self._remember(event)

    def problems(self, found: Seen) -> tuple[str, ...]:
        """Sentences on the XID errors of a device's GPU."""
        xids = self._seen.get(found.device.parent or found.device.uuid, {})
        return tuple(_sentence(xid) for xid in xids)

    def close(self) -> None:
        """Stop listening."""
        if self._events is None:
            return
        try:
            pynvml.nvmlEventSetFree(self._events)
        except NVMLError:
            pass
        finally:
            self._events = None

    def _next(self) -> Any:
        if self._events is None:
            return None
        try:
            return pynvml.nvmlEventSetWait(self._events, 0)
        except NVMLError:
            # Nothing came, or nothing can come: a lost GPU and a failing driver show elsewhere.
            return None

    def _remember(self, event: Any) -> None:
        try:
            uuid = DeviceUuid(pynvml.nvmlDeviceGetUUID(event.device))
        except NVMLError:
            return
        self._seen.setdefault(uuid, {})[int(event.eventData)] = None


def _sentence(xid: int) -> str:
    name = _NAMES.get(xid)
    return f"Its driver reported XID {xid}{f' ({name})' if name else ''}."
