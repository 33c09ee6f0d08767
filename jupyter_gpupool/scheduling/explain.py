"""How a claim stands with the devices of the pool: counted and put into words.

Called by `passes.plan` for the reason of each wait, and by the manager when somebody asks why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jupyter_gpupool.pool.units import format_bytes, plural

from .snapshot import FreeDevice, HostView, Obstacle, Terms

_MOST_MODELS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospects:
    """The devices of the pool as one claim sees them.

    Attributes:
        devices: How many fit its terms, free or not.
        free: How many of those are free.
        hindered: How many of the others are kept from it, by what keeps them.
        joined: Every device there is, as "4 × NVIDIA A100 with 40 GiB", most numerous first.
    """

    devices: int
    free: int
    hindered: Mapping[Obstacle, int]
    joined: tuple[str, ...]


def prospects(terms: Terms, hosts: Iterable[HostView]) -> Prospects:
    """Count the devices that fit these terms, and what keeps them."""
    every = [(host, device) for host in hosts for device in host.capacity]
    fitting = [(host, device) for host, device in every if terms.accept(host.id, device)]
    seen = Counter(host.obstacles.get(device.uuid) for host, device in fitting)
    return Prospects(
        devices=len(fitting),
        free=seen.pop(None, 0),
        hindered={obstacle: count for obstacle, count in seen.items() if obstacle is not None},
        joined=tuple(_models(device for _, device in every)),
    )


def obstacles_in_words(hindered: Mapping[Obstacle, int]) -> str:
    """What nobody in line can change, as part of a sentence; "" if there is no such thing."""
    return ", ".join(
        f"{hindered[obstacle]} {words}"
        for obstacle, words in _ODD.items()
        if hindered.get(obstacle)
    )


def prospects_in_words(seen: Prospects, *, own: int = 0) -> str:
    """One sentence on the devices that would do; `own` of them are the claim's already."""
    if not seen.devices:
        return f"No device of the pool would do; it has {_listed(seen.joined)}."
    others = seen.hindered.get(Obstacle.LEASED, 0) - own
    parts = [f"{own} its own"] if own else []
    parts += [f"{seen.free} free"]
    parts += [f"{others} held by other claims"] if others > 0 else []
    odd = obstacles_in_words(seen.hindered)
    parts += [odd] if odd else []
    return f"{plural(seen.devices, 'device')} of the pool would do: {', '.join(parts)}."


_ODD = {
    Obstacle.ELSEWHERE: "held by another pool on the host",
    Obstacle.FOREIGN: "in use outside the pool",
    Obstacle.QUARANTINED: "quarantined",
    Obstacle.FREEING: "still being freed",
    Obstacle.HOST: "on a host that can start nothing now",
}


def _models(devices: Iterable[FreeDevice]) -> Iterator[str]:
    counts = Counter((device.model, device.memory_bytes) for device in devices)
    for (model, memory_bytes), count in counts.most_common():
        yield f"{count} × {model} with {format_bytes(memory_bytes)}"


def _listed(joined: tuple[str, ...]) -> str:
    if not joined:
        return "none at all"
    more = len(joined) - _MOST_MODELS
    return ", ".join(joined[:_MOST_MODELS]) + (f" and {more} more kinds" if more > 0 else "")
