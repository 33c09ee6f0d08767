"""Where a running pool's devices come from: the stub libraries, or none so that they are simulated.

Called by the running pool and by scenarios that change a device midway.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from stubs.state import StubGpu, StubState

from .processes import Process


class TestDevices(Protocol):
    """What a running pool has to know of its devices."""

    __test__ = False

    def environment(self) -> Mapping[str, str]:
        """What the agent's environment needs."""

    def agent_options(self) -> tuple[str, ...]:
        """What the agent's command line needs."""

    def contexts(self) -> dict[str, set[int]]:
        """Pids that hold a CUDA context, by device UUID; empty where nobody can know."""


class SimulatedDevices:
    """Devices that only our agents know, of a machine that no other test run simulates."""

    def __init__(self, count: int | None) -> None:
        self._count = count
        self._host = uuid4().hex

    def environment(self) -> Mapping[str, str]:
        return {}

    def agent_options(self) -> tuple[str, ...]:
        host = f"--simulated-host={self._host}"
        return (host,) if self._count is None else (host, f"--simulated={self._count}")

    def contexts(self) -> dict[str, set[int]]:
        return {}


class StubDevices:
    """Devices of the stub NVML and CUDA libraries; `state` changes them midway.

    Their UUIDs are new each time, so that the host-wide locks of two test runs never meet.
    """

    def __init__(self, folder: Path, gpus: int) -> None:
        # Workers may run as another user, and register their contexts here.
        folder.chmod(0o755)
        plain = [StubGpu(uuid=f"GPU-{uuid4()}", bus=bus) for bus in range(1, gpus + 1)]
        self.folder = folder
        self.state = StubState(folder).with_gpus(*plain)

    def environment(self) -> Mapping[str, str]:
        return self.state.env()

    def agent_options(self) -> tuple[str, ...]:
        return ("--simulated=0",)

    def contexts(self) -> dict[str, set[int]]:
        pids: dict[str, set[int]] = defaultdict(set)
        for path in (self.folder / "contexts").iterdir():
            pid, start, _, uuid = path.name.split("-", 3)
            if Process(int(pid), int(start)).lives:
                pids[uuid].add(int(pid))
        return pids
