"""XID events: what a GPU's driver reports of its hardware, as sentences that name the way out.

Called by `nvml.NvmlDevices` with each sample. An event comes once; it is kept until the GPU was
reset or the host restarted.
"""

from collections.abc import Iterable
from typing import Any

import pynvml

from jupyter_gpupool.pool.ids import DeviceUuid

from .nvml_calls import NVMLError, ask
from .nvml_listing import Seen
from .xid_record import XidRecord

CAUSED_BY_PROGRAMS = frozenset({13, 31, 43, 45, 68, 109})
"""XIDs that a faulty program causes on a sound GPU: its error, no reason to stop leasing."""
TOLD_BY_MEMORY = frozenset({63, 92, 94})
"""XIDs of memory that was healed or is to be: `nvml_health` knows if anything is left to do."""
OF_DISPLAYS = frozenset({16, 56})
_NO_REASON = CAUSED_BY_PROGRAMS | TOLD_BY_MEMORY | OF_DISPLAYS
_MOST_EVENTS = 100
_NAMES = {
    48: "uncorrectable memory error",
    64: "row remapping failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    95: "uncontained memory error",
    119: "GPU system processor timed out",
    120: "GPU system processor error",
}


class XidWatch:
    """Remembers the XID errors that each GPU had since the watch, or its record, began."""

    def __init__(self, record: XidRecord) -> None:
        self._events: Any = None
        self._record = record

    def watch(self, devices: Iterable[Seen]) -> None:
        """Listen to these devices' GPUs from now on; what was seen before is kept.

        Raises:
            NVMLError: If the driver fails.
        """
        self._events = ask(pynvml.nvmlEventSetCreate)
        if self._events is None:
            return
        whole = {found.gpu_uuid: found.gpu for found in devices}
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
            if event.eventData not in _NO_REASON:
                self._remember(event)

    def problems(self, found: Seen) -> tuple[str, ...]:
        """Sentences on the XID errors of a device's GPU."""
        return tuple(_sentence(xid) for xid in self._record.of(found.gpu_uuid))

    def forget(self, gpu: DeviceUuid) -> None:
        """It was reset."""
        self._record.forget(gpu)

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
        self._record.add(uuid, int(event.eventData))


def _sentence(xid: int) -> str:
    name = _NAMES.get(xid)
    what = f"XID {xid} ({name})" if name else f"XID {xid}"
    return f"Its driver reported {what}: reset it with nvidia-smi, or restart the host."
