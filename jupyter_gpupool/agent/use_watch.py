"""What this host's claims do: looked at each second, told with each report.

Owned by `host.HostAgent`. Schedulers say of themselves what goes on in them, devices are asked. All
on the monotonic clock, which one boot of the host has in common for all its processes, so that an
agent that starts anew goes on where the one before it was.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from jupyter_gpupool.pool.device import Device, DeviceSample
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.signals import WHOLE_USE
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.launch import Role
from jupyter_gpupool.protocol.link import ClaimUse

from .claim_use import ClaimGauges, DeviceUse
from .keys import ProcessKey
from .seen import Seen, Stage
from .shares import used_bytes
from .use_history import UseHistory

LEAST_WINDOW_S = 1.0
"""No window is shorter, unless the manager asks."""
LONGEST_WINDOW_S = 60.0

Owners = Mapping[DeviceUuid, Mapping[int, ProcessKey]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The devices of a host as they were last sampled.

    Attributes:
        owners: Whose the processes on devices are that claims have parts of.
    """

    known: Mapping[DeviceUuid, Device]
    samples: Mapping[DeviceUuid, DeviceSample]
    owners: Owners = field(default_factory=dict)


class UseWatch:
    """The gauges of every claim on this host.

    Args:
        stirred: Called when a claim is active that was told quiet last.
    """

    def __init__(self, stirred: Callable[[], None]) -> None:
        self._stirred = stirred
        self._gauges: dict[ClaimId, ClaimGauges] = {}
        self._told: dict[ClaimId, UseHistory] = {}
        self._last_samples: Mapping[DeviceUuid, DeviceSample] = {}
        self._say_again = False
        self._is_asked = False

    def heard(self, claim_id: ClaimId, activity: Activity, now_s: float) -> None:
        """A scheduler says what goes on in it."""
        self._of(claim_id, now_s).heard(activity, now_s)
        self._tell_if_stirred(claim_id)

    def sampled(self, rows: Collection[Seen], devices: Sampled, now_s: float) -> None:
        """Look at what was sampled; samples that were looked at before tell nothing new."""
        if devices.samples is self._last_samples:
            return
        self._last_samples = devices.samples
        for claim_id, seen in device_uses(rows, devices).items():
            self._of(claim_id, now_s).sampled(seen, now_s)
            self._tell_if_stirred(claim_id)

    def keep_short(self, now_s: float) -> None:
        """While nobody is there to be told, windows go into history: a long one says little."""
        for claim_id, gauges in self._gauges.items():
            if now_s - gauges.begin_s >= LONGEST_WINDOW_S:
                self._history(claim_id).keep(gauges.cut(claim_id, now_s))
                self._say_again = True

    def joins(self) -> None:
        """The next report is the first one on a connection."""
        self._say_again = True

    def asked(self) -> None:
        """The next report is asked for: it says all until now."""
        self._is_asked = True

    def cut(self, present: Collection[ClaimId], now_s: float) -> tuple[ClaimUse, ...]:
        """What is to be told now; claims that are no more present are forgotten."""
        for claim_id in self._gauges.keys() - set(present):
            del self._gauges[claim_id]
            self._told.pop(claim_id, None)
        say_again, self._say_again = self._say_again, False
        least_s, self._is_asked = 0.0 if self._is_asked else LEAST_WINDOW_S, False
        told: list[ClaimUse] = []
        for claim_id, gauges in self._gauges.items():
            fresh = gauges.cut(claim_id, now_s) if _is_due(gauges, now_s, least_s) else None
            history = self._history(claim_id)
            told += history.all() if say_again else ()
            if fresh is not None:
                history.keep(fresh)
                told.append(fresh)
        return tuple(told)

    def _history(self, claim_id: ClaimId) -> UseHistory:
        return self._told.setdefault(claim_id, UseHistory())

    def _of(self, claim_id: ClaimId, now_s: float) -> ClaimGauges:
        if claim_id not in self._gauges:
            self._gauges[claim_id] = ClaimGauges(begin_s=now_s)
        return self._gauges[claim_id]

    def _tell_if_stirred(self, claim_id: ClaimId) -> None:
        if self._gauges[claim_id].has_stirred:
            self._stirred()


def device_uses(rows: Collection[Seen], devices: Sampled) -> Mapping[ClaimId, DeviceUse]:
    """What each claim's devices do, by what was sampled."""
    workers: dict[ClaimId, list[Seen]] = {}
    for seen in rows:
        if seen.key.role is Role.WORKER and seen.stage is Stage.ALIVE:
            workers.setdefault(seen.key.claim_id, []).append(seen)
    return {claim_id: _device_use(mine, devices) for claim_id, mine in workers.items()}


def _device_use(workers: Collection[Seen], devices: Sampled) -> DeviceUse:
    seen = [(worker, uuid) for worker in workers for uuid in worker.devices]
    return DeviceUse(
        leases=tuple(w.key.lease_id for w in workers if w.key.lease_id is not None),
        utilisations=tuple(_utilisation(uuid, devices) for _, uuid in seen),
        held=tuple(_held_bytes(worker, uuid, devices) for worker, uuid in seen),
    )


def _utilisation(uuid: DeviceUuid, devices: Sampled) -> int | None:
    device, sample = devices.known.get(uuid), devices.samples.get(uuid)
    if device is not None and device.simulated:
        return 0  # nothing computes on it, and nobody holds its memory
    if sample is None or sample.utilisation is None:
        return None
    return round(sample.utilisation * WHOLE_USE)


def _held_bytes(worker: Seen, uuid: DeviceUuid, devices: Sampled) -> int | None:
    device, sample = devices.known.get(uuid), devices.samples.get(uuid)
    if device is not None and device.simulated:
        return 0
    if sample is None:
        return None
    if worker.share < WHOLE_DEVICE:
        return used_bytes(sample, devices.owners.get(uuid, {}), worker.key)
    return sample.memory_used_bytes


def _is_due(gauges: ClaimGauges, now_s: float, least_s: float) -> bool:
    return now_s > gauges.begin_s and now_s - gauges.begin_s >= least_s
