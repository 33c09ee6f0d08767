"""The devices of the pool as one claim sees them: counted and put into words.

Called by the manager when somebody asks why; what the pass itself met is told in `reasons`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jupyter_gpupool.pool.ids import DeviceUuid
from jupyter_gpupool.pool.units import format_bytes, plural

from .reasons import obstacles_in_words
from .shape import DeviceView, HostShape, Obstacle, WorkerShape

_MOST_MODELS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospects:
    """How a claim stands with the devices of the pool.

    Attributes:
        devices: How many fit its terms, free or not.
        free: How many of those are free.
        leased: How many of them claims hold.
        hindered: How many of the others are kept from it, by what keeps them.
        joined: Every device there is, as "4 × NVIDIA A100 with 40 GiB", most numerous first.
    """

    devices: int
    free: int
    leased: int
    hindered: Mapping[Obstacle, int]
    joined: tuple[str, ...]


def prospects(shape: WorkerShape, hosts: Iterable[HostShape], leased: set[DeviceUuid]) -> Prospects:
    """Count the devices that fit this shape, and what keeps them."""
    every = [(host, device) for host in hosts for device in host.devices]
    fits = [device for host, device in every if would_do(shape, host, device)]
    idle = [device for device in fits if device.uuid not in leased]
    hindered = Counter(each.obstacle for each in idle if each.obstacle is not None)
    return Prospects(
        devices=len(fits),
        free=sum(device.obstacle is None for device in idle),
        leased=len(fits) - len(idle),
        hindered=hindered,
        joined=tuple(_models(device for _, device in every)),
    )


def would_do(shape: WorkerShape, host: HostShape, device: DeviceView) -> bool:
    """Whether a device of a host would do for a worker of this shape, free or not."""
    fits = shape.model in device.model.lower() and device.memory_bytes >= shape.device_memory_bytes
    allowed = host.id not in shape.barred and host.id not in shape.avoid
    return fits and allowed and shape.labels <= host.labels


def prospects_in_words(seen: Prospects, *, own: int = 0) -> str:
    """One sentence on the devices that would do; `own` of them are the claim's already."""
    if not seen.devices:
        return f"No device of the pool would do; it has {_listed(seen.joined)}."
    others = seen.leased - own
    parts = [f"{own} its own"] if own else []
    parts += [f"{seen.free} free"]
    parts += [f"{others} held by other claims"] if others > 0 else []
    odd = obstacles_in_words(seen.hindered)
    parts += [odd] if odd else []
    return f"{plural(seen.devices, 'device')} of the pool would do: {', '.join(parts)}."


def _models(devices: Iterable[DeviceView]) -> Iterator[str]:
    counts = Counter((device.model, device.memory_bytes) for device in devices)
    for (model, memory_bytes), count in counts.most_common():
        yield f"{count} × {model} with {format_bytes(memory_bytes)}"


def _listed(joined: tuple[str, ...]) -> str:
    if not joined:
        return "none at all"
    more = len(joined) - _MOST_MODELS
    return ", ".join(joined[:_MOST_MODELS]) + (f" and {more} more kinds" if more > 0 else "")
