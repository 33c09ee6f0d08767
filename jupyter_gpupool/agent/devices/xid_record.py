"""The XID errors of this host's GPUs, kept for the next agent: no restart of ours heals a GPU.

Kept by `nvml_xids.XidWatch`. A restart of the host does heal most, so a record of another boot
counts for nothing.
"""

import json
import logging
from pathlib import Path

from jupyter_gpupool.agent.procfs import boot_id
from jupyter_gpupool.pool.ids import DeviceUuid

logger = logging.getLogger(__name__)


class XidRecord:
    """XIDs by GPU.

    Args:
        file: Where they outlive this agent; None keeps them nowhere.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._xids = _read(file) if file is not None else {}

    def of(self, gpu: DeviceUuid) -> tuple[int, ...]:
        """What a GPU has had, oldest first."""
        return tuple(self._xids.get(gpu, ()))

    def add(self, gpu: DeviceUuid, xid: int) -> None:
        """It has had one more."""
        if xid not in self.of(gpu):
            self._xids.setdefault(gpu, []).append(xid)
            self._write()

    def forget(self, gpu: DeviceUuid) -> None:
        """It is as good as new."""
        if self._xids.pop(gpu, None) is not None:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            return
        draft = self._file.with_suffix(".draft")
        try:
            draft.write_text(json.dumps({"boot": boot_id(), "xids": self._xids}))
            draft.replace(self._file)
        except OSError as error:
            logger.warning("XID errors are not kept for the next agent: %s", error)


def _read(file: Path) -> dict[DeviceUuid, list[int]]:
    """Empty if it is of another boot. What cannot be read is as good as lost: it is told."""
    try:
        kept = json.loads(file.read_text())
        if kept["boot"] != boot_id():
            return {}
        return {DeviceUuid(gpu): [int(xid) for xid in xids] for gpu, xids in kept["xids"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        logger.warning("XID errors of the last agent cannot be read: %s", error)
        return {}
