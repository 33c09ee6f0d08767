"""Where a running pool's devices come from: the stub libraries, or none so that they are simulated.

Called by the running pool. The stubs' own state builder lives in tests/stubs and is loaded from
there by its path, because test folders are no packages.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


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
    """Devices that only our agent knows."""

    def __init__(self, count: int) -> None:
        self._count = count

    def environment(self) -> Mapping[str, str]:
        return {}

    def agent_options(self) -> tuple[str, ...]:
        return (f"--simulated={self._count}",)

    def contexts(self) -> dict[str, set[int]]:
        return {}


class StubDevices:
    """Devices of the stub NVML and CUDA libraries; `state` changes them midway."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def environment(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.state.env()
        return found

    def agent_options(self) -> tuple[str, ...]:
        return ("--simulated=0",)

    def contexts(self) -> dict[str, set[int]]:
        pids: dict[str, set[int]] = defaultdict(set)
        for context in self.state.contexts():
            pids[context.uuid].add(context.pid)
        return pids


def write_privately(path: Path, text: str) -> None:
    """A file that nobody else may read."""
    path.touch(mode=0o600)
    path.write_text(text)
