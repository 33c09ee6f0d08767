"""A wall clock that a test can set, for processes started with its environment.

Called by the scenario of the clock set back; the monotonic clock stays the machine's own.
"""

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_shim.c")


class SettableClock:
    """Seconds that are added to the wall clock of every process started with `environment`."""

    def __init__(self, folder: Path) -> None:
        self._library = folder / "libclock.so"
        self._offset = folder / "clock-offset"
        self._offset.write_bytes(struct.pack("q", 0))
        compiler = shutil.which("cc")
        assert compiler is not None, "asked for without a C compiler"
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(self._library), str(SOURCE)]
        subprocess.run(command, check=True, timeout=60)

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process see this clock."""
        return {"LD_PRELOAD": str(self._library), "GPUPOOL_TEST_CLOCK": str(self._offset)}

    def shift(self, seconds: int) -> None:
        """Set the clock that many seconds off, at once, in every such process."""
        with self._offset.open("r+b") as file:
            file.write(struct.pack("q", seconds))
