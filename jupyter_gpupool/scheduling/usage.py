"""What a queue has used of late: device time, of which half counts no more after a half-life.

Kept by whoever keeps the books: one `Usage` per leaf, changed at each grant and each return.
Reading it changes nothing, so it does not matter how often it is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, fsum, log
from typing import Final

from jupyter_gpupool.scheduling.amounts import WHOLE_DEVICE
from jupyter_gpupool.scheduling.queues import QueueTree
from jupyter_gpupool.scheduling.shares import ALL_USAGE

HALF_LIFE_S: Final = 86_400.0
"""The default: what was used yesterday at this time counts half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The decayed device time of one leaf, and what goes on being charged.

    Attributes:
        device_s: Decayed device-seconds as of `at_s`.
        held: Thousandths of a device held since then, each charged from its grant on.
        at_s: Seconds since any fixed moment, the same for all.
    """

    device_s: float = 0.0
    held: int = 0
    at_s: float = 0.0


def usage_at(usage: Usage, now_s: float, *, half_life_s: float = HALF_LIFE_S) -> float:
    """Read the decayed device-seconds at a later moment.

    The solution of du/dt = held - u ln 2 / half-life; an infinite half-life forgets nothing. What
    is before `at_s` reads as `at_s`, for a clock set back must not give usage back.
    """
    passed = max(0.0, now_s - usage.at_s)
    rate = log(2) / half_life_s
    charged = passed if not rate else -expm1(-rate * passed) / rate
    return usage.device_s * exp(-rate * passed) + usage.held / WHOLE_DEVICE * charged


def charge(usage: Usage, change: int, now_s: float, *, half_life_s: float = HALF_LIFE_S) -> Usage:
    """Note a grant (`change` above 0) or a return (below), in thousandths of a device."""
    return Usage(
        device_s=usage_at(usage, now_s, half_life_s=half_life_s),
        held=usage.held + change,
        at_s=max(now_s, usage.at_s),
    )


def usage_by_queue(tree: QueueTree, leaves: Mapping[str, float]) -> dict[str, float]:
    """Add up the usage of leaves for every queue above them; a leaf without usage has used none."""
    total = {name: leaves.get(name, 0.0) for name in tree.top_down}
    for name in reversed(tree.top_down):
        if below := tree.children[name]:
            # Rounded once, so that the order of children decides nothing.
            total[name] = fsum([total[child] for child in below])
    return total


def normalised(usages: Sequence[float]) -> tuple[int, ...]:
    """Turn the usage of siblings into u': each one's part of what they used together.

    Returns:
        Parts of `ALL_USAGE`, all zero if nobody has used anything.
    """
    together = fsum(usages)
    if together <= 0:
        return (0,) * len(usages)
    return tuple([round(usage / together * ALL_USAGE) for usage in usages])
