"""What the agent needs to know of a host's devices, whoever answers: NVML or the simulation."""

from typing import Protocol

from jupyter_gpupool.pool.device import Device, DeviceSample


class Devices(Protocol):
    """A host's devices. Call it from one thread at a time; each call takes milliseconds.

    No method raises for a device or a driver that fails: what fails is sampled as lost, with the
    problem in a sentence, and comes back by itself when it works again.
    """

    def list(self) -> tuple[Device, ...]:
        """Every leasable device seen since the start, in NVML's order; those gone come last.

        The newest `sample` brings it up to date: a device that appeared is added, never removed.
        """
        ...

    def sample(self) -> tuple[DeviceSample, ...]:
        """How each device of `list` is now, in the same order; the lost ones too."""
        ...

    def close(self) -> None:
        """Let go of the driver. Closing twice is fine."""
        ...
