"""How a device is at one moment. Called by `nvml.NvmlDevices` for each device of each sample."""

from dataclasses import dataclass
from datetime import datetime

import pynvml

from jupyter_gpupool.pool.device import DeviceSample
from jupyter_gpupool.pool.ids import DeviceUuid

from .nvml_calls import GpuIsLost, NVMLError, ask, said
from .nvml_listing import Seen
from .nvml_processes import processes_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a device could not be sampled.

    Attributes:
        of_nvml: NVML's error if it may be NVML as a whole that fails, not just the device.
        removed: Whether it is a MIG instance that is no more.
    """

    sentence: str
    of_nvml: Exception | None = None
    removed: bool = False

    def sample(self, uuid: DeviceUuid, at: datetime) -> DeviceSample:
        """What is known of the device all the same."""
        return DeviceSample(
            uuid=uuid,
            at=at,
            processes=None,
            problems=(self.sentence,),
            lost=True,
            removed=self.removed,
        )


def measure(found: Seen, at: datetime, problems: tuple[str, ...]) -> DeviceSample | Failure:
    """Ask NVML how a device is; `problems` are those that are known already."""
    try:
        return _measure(found, at, problems)
    except GpuIsLost:
        return Failure(sentence="NVML says that it is lost: it fell off the bus.")
    except NVMLError as error:
        sentence = f"NVML cannot read it and says {said(error)}."
        return Failure(sentence=sentence, of_nvml=error)


def _measure(found: Seen, at: datetime, problems: tuple[str, ...]) -> DeviceSample:
    handle = found.handle
    # A MIG instance has no use, heat or power of its own to measure.
    use = None if found.is_mig else ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
    power_mw = None if found.is_mig else ask(pynvml.nvmlDeviceGetPowerUsage, handle)
    return DeviceSample(
        uuid=found.device.uuid,
        at=at,
        utilisation=None if use is None else use.gpu / 100,
        memory_used_bytes=_memory_used_bytes(found),
        temperature_c=ask(pynvml.nvmlDeviceGetTemperature, found.gpu, pynvml.NVML_TEMPERATURE_GPU),
        power_w=None if power_mw is None else power_mw / 1000,
        processes=processes_on(handle),
        problems=problems,
    )


def _memory_used_bytes(found: Seen) -> int | None:
    # The second version leaves out what the driver keeps for itself, so that a free device has 0.
    memory = ask(pynvml.nvmlDeviceGetMemoryInfo, found.handle, pynvml.nvmlMemory_v2)
    if memory is None:
        memory = ask(pynvml.nvmlDeviceGetMemoryInfo, found.handle)
    return None if memory is None else int(memory.used)
