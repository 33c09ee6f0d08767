"""What tells whether a claim is used: signals, and samples of them over windows of time.

Made of what agents, Dask schedulers and Jupyter servers report; judged by `scheduling.idle`.
Amounts are whole numbers, so that what is added up piece by piece equals the whole exactly.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

LONGEST_WINDOW_MS: Final = 3_600_000
"""Of one sample."""
WHOLE_USE: Final = 1000
"""A device that computes all the time, in the thousandths that utilisation is counted in."""


class Signal(StrEnum):
    """What a rule may ask about."""

    TASKS = "tasks"
    """Dask tasks that run, can run, or are being moved. One that can never run is none."""
    CALLS = "calls"
    """Code that is no task: `client.run` and methods of actors."""
    GPU = "gpu"
    """Utilisation of the claim's devices, against the rule's `gpu_below`."""
    MEMORY = "memory"
    """Device memory that grows or shrinks. What is merely held is none."""
    KERNEL = "kernel"
    """Kernels of the claim that run what a person had them run."""
    CLIENTS = "clients"
    """Dask clients that say more than that they are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was seen of a claim in a window of time.

    A signal is active if it was so at any time of the window, quiet if it is known to have been
    quiet all the time, and otherwise unknown.

    Attributes:
        life: Of which run of the clock the window's times are; no two lives can be compared. A
            host's boot is one, so that restarts of agent and manager lose nothing.
        begin_ms, end_ms: The window, by the monotonic clock of that life.
        at: What the calendar showed at its end. Decides on hours and is shown; measures nothing.
        active, quiet: Signals but `GPU`. Those in neither are unknown.
        gpu_peak: The highest utilisation of any of its devices, in thousandths; None is unknown.
        gpu_mean: Their mean over the window, in thousandths; None is unknown.
        held_bytes: Device memory that the claim's processes hold at the end; None is unknown.
        orphaned: Whether everything that used the claim is gone for good; None is unknown.

    Raises:
        ValueError: If it contradicts itself: whoever made it is wrong.
    """

    life: str
    begin_ms: int
    end_ms: int
    at: datetime
    active: frozenset[Signal] = frozenset()
    quiet: frozenset[Signal] = frozenset()
    gpu_peak: int | None = None
    gpu_mean: int | None = None
    held_bytes: int | None = None
    orphaned: bool | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.end_ms - self.begin_ms <= LONGEST_WINDOW_MS:
            raise ValueError(f"no sample lasts {self.end_ms - self.begin_ms} ms")
        if self.at.tzinfo is None:
            raise ValueError("a sample's time has no zone")
        if self.active & self.quiet or Signal.GPU in self.active | self.quiet:
            raise ValueError("a signal is active or quiet, and the GPU's is told by its use")
        peak = WHOLE_USE if self.gpu_peak is None else self.gpu_peak
        mean = 0 if self.gpu_mean is None else self.gpu_mean
        if not 0 <= mean <= peak <= WHOLE_USE:
            raise ValueError(f"utilisation of {mean} on the mean and {peak} at most makes no sense")


class Presence(StrEnum):
    """Whether somebody who used a claim is still there."""

    HERE = "here"
    """Seen, or on the way back: a kernel that restarts."""
    GONE = "gone"
    """For good, as somebody knows who must know: its Jupyter server, or its host."""
    UNKNOWN = "unknown"
    """Nothing was heard: a laptop that sleeps, a cut network."""


def orphaned(users: tuple[Presence, ...]) -> bool | None:
    """Whether a claim has lost all who used it.

    A browser is none of them: closing it ends neither kernel nor client.

    Args:
        users: Of its kernels and of the Dask clients of no kernel. A claim that nobody has used
            so far is no orphan.

    Returns:
        None if that cannot be known.
    """
    if not users or Presence.HERE in users:
        return False
    return None if Presence.UNKNOWN in users else True
