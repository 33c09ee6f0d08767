"""Samples the host's devices, and judges which are free again, held elsewhere or used by others.

Runs as a task of `host.HostAgent`. NVML is asked in a thread, for it can hang with a sick driver;
what it last said then grows old, and old is unknown.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from jupyter_gpupool.pool.device import Device, DeviceProcess, DeviceSample
from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.pool.ids import DeviceUuid
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.units import format_duration

from .devices.base import Devices
from .devices.lock import DeviceLocks
from .freeing import (
    TOLERATED_BYTES,
    Evidence,
    Freedom,
    Verdict,
    used_for_computing,
    verdict_on,
    without,
)
from .keys import ProcessKey
from .seen import Seen, Stage
from .shares import GRACE_S
from .table import Table

_WHILE_FREEING_S = 0.1
_LOCKS_EVERY_S = 1.0
_UNKNOWN_AFTER_S = 30.0
_SILENT = f"The GPU driver has not answered for more than {format_duration(_UNKNOWN_AFTER_S)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How closely devices are watched.

    Attributes:
        busy_s: Between samples while anything is leased.
        idle_s: Between samples while nothing is.
        verify_within_s: After the last process has gone, until a device that is not free is
            quarantined.
        tolerated_bytes: Of device memory in use on a free device.
        share_grace_s: From the warning until a worker that takes more than its part has to go.
    """

    busy_s: float = 1.0
    idle_s: float = 5.0
    verify_within_s: float = 10.0
    tolerated_bytes: int = TOLERATED_BYTES
    share_grace_s: float = GRACE_S


OwnersOn = Callable[[DeviceSample], Mapping[int, ProcessKey]]
"""Tells whose each process on a device is, by pid, of the leases that still run there."""


def _nobodys(_: DeviceSample) -> Mapping[int, ProcessKey]:
    return {}


Dirty = Callable[[], Mapping[DeviceUuid, str]]
"""Tells what is left of earlier leases on the host that cannot be removed, by their devices."""


def _nothing() -> Mapping[DeviceUuid, str]:
    return {}


ForeignOn = Callable[[DeviceSample], tuple[DeviceProcess, ...]]


class DeviceWatch:
    """All that is known of the host's devices now.

    Args:
        owners_on: Asked of devices that workers have parts of.
        dirty: Asked of all devices.

    Attributes:
        known: Every device ever listed since the agent started.
        samples: The last one each.
        foreign: Processes on them outside any claim.
        owners: Whose the processes on shared devices are.
        held_elsewhere: Those another pool on this host has leased, or whose lock cannot be used.
    """

    def __init__(
        self,
        devices: Devices,
        locks: DeviceLocks,
        table: Table,
        pace: Pace,
        owners_on: OwnersOn = _nobodys,
        *,
        dirty: Dirty = _nothing,
    ) -> None:
        self._devices = devices
        self._dirty = dirty
        self._owners_on = owners_on
        self._locks = locks
        self._table = table
        self._pace = pace
        self._wake = asyncio.Event()
        self._sampled_at_s = time.monotonic()
        self.known: dict[DeviceUuid, Device] = {device.uuid: device for device in devices.list()}
        self.samples: dict[DeviceUuid, DeviceSample] = {}
        self.foreign: dict[DeviceUuid, tuple[DeviceProcess, ...]] = {}
        self.owners: dict[DeviceUuid, Mapping[int, ProcessKey]] = {}
        self.held_elsewhere: frozenset[DeviceUuid] = frozenset()
        self._not_free: dict[tuple[ProcessKey, DeviceUuid], str] = {}
        self._lock_problems: dict[DeviceUuid, str] = {}

    @property
    def quarantined(self) -> Mapping[DeviceUuid, str]:
        """Devices not to be leased for what is known beyond their samples, and why."""
        # A sample that is old says nothing of who uses the device now.
        unknown = dict.fromkeys(self.known, _SILENT) if self.problem else {}
        not_free = {uuid: reason for (_, uuid), reason in self._not_free.items()}
        return {**unknown, **self._lock_problems, **not_free, **self._dirty()}

    @property
    def problem(self) -> str:
        """One sentence if the devices have not answered for long, else ""."""
        silent_s = time.monotonic() - self._sampled_at_s
        if silent_s < _UNKNOWN_AFTER_S:
            return ""
        return f"The GPU driver has not answered for {format_duration(silent_s)}."

    def memory_used_beside(self, uuid: DeviceUuid) -> int | None:
        """Memory in use on a device when it was last sampled, but for leases and for drawing."""
        sample = self.samples.get(uuid)
        if sample is None:
            return None
        return used_for_computing(without(sample, self.owners.get(uuid, {})))

    def look_soon(self) -> None:
        """Something changed: do not wait for the next sample."""
        self._wake.set()

    async def run(
        self, foreign_on: ForeignOn, freed: Callable[[Seen], None], changed: Callable[[], None]
    ) -> None:
        """Sample for ever; `freed` hears of each lease whose device is free, `changed` of news."""
        while True:
            self._wake.clear()
            if await self.look(foreign_on):
                changed()
            self.judge(freed)
            await self._pause(changed)

    async def _pause(self, changed: Callable[[], None]) -> None:
        """Until the next sample is due. Locks of other pools are looked at meanwhile."""
        until_s = time.monotonic() + self._pause_s()
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                # Not `wait_for`: before Python 3.12 it may lose a cancellation, and go on for ever.
                async with asyncio.timeout(min(left_s, _LOCKS_EVERY_S)):
                    await self._wake.wait()
            except TimeoutError:
                if self.look_at_locks():
                    changed()
            else:
                return

    def look_at_locks(self) -> bool:
        """See to our locks, and which devices other pools have leased; whether that is new."""
        before = (self.held_elsewhere, self._lock_problems)
        self._lock_problems = {uuid: str(error) for uuid, error in self._locks.keep().items()}
        self.held_elsewhere = frozenset(
            uuid for uuid in self.known if self._is_held_elsewhere(uuid)
        )
        return (self.held_elsewhere, self._lock_problems) != before

    async def look(self, foreign_on: ForeignOn) -> bool:
        """Sample once; whether anything but the numbers is new."""
        before = (dict(self.known), self._judged())
        began_s = time.monotonic()
        listed, samples = await asyncio.to_thread(self._ask)
        self._sampled_at_s = began_s
        self.known = {device.uuid: device for device in listed}
        self.samples = {sample.uuid: sample for sample in samples}
        self.foreign = {sample.uuid: foreign_on(sample) for sample in samples}
        shared = {row.device for row in self._table.values() if row.share < WHOLE_DEVICE}
        self.owners = {s.uuid: self._owners_on(s) for s in samples if s.uuid in shared}
        self.look_at_locks()
        return before != (self.known, self._judged())

    def judge(self, freed: Callable[[Seen], None]) -> None:
        """Tell which leases' devices are free, and quarantine those that are not in time."""
        for key, seen in self._table.items():
            if seen.stage is not Stage.FREEING:
                continue
            verdicts = {uuid: self._verdict(seen, uuid) for uuid in seen.devices}
            for uuid, verdict in verdicts.items():
                if verdict.freedom is Freedom.FREE:
                    self._not_free.pop((key, uuid), None)
                elif verdict.freedom is Freedom.QUARANTINED:
                    self._quarantine(seen, uuid, verdict.reason)
            if all(verdict.freedom is Freedom.FREE for verdict in verdicts.values()):
                freed(self._table[key])

    def _quarantine(self, seen: Seen, device: DeviceUuid, reason: str) -> None:
        self._not_free[seen.key, device] = reason
        self._table.put(replace(seen, problem=reason))

    def _verdict(self, seen: Seen, uuid: DeviceUuid) -> Verdict:
        assert seen.gone_at_s is not None
        device, sample = self.known.get(uuid), self.samples.get(uuid)
        fresh = self._sampled_at_s > seen.gone_at_s
        if sample is not None:
            sample = without(sample, self.owners.get(uuid, {}))
        evidence = Evidence(
            simulated=device is not None and device.simulated,
            sample=sample if fresh else None,
            baseline_bytes=seen.baseline_on(uuid),
            waited_s=time.monotonic() - seen.gone_at_s,
            left=self._dirty().get(uuid, ""),
        )
        return verdict_on(
            evidence,
            verify_within_s=self._pace.verify_within_s,
            tolerated_bytes=self._pace.tolerated_bytes,
        )

    def _pause_s(self) -> float:
        waiting = [seen for seen in self._table.values() if seen.stage is Stage.FREEING]
        stuck = {key for key, _ in self._not_free}
        if any(seen.key not in stuck for seen in waiting):
            return _WHILE_FREEING_S
        return self._pace.busy_s if self._table else self._pace.idle_s

    def _ask(self) -> tuple[tuple[Device, ...], tuple[DeviceSample, ...]]:
        # In this order: the sample finds what is new, the list then has it.
        samples = self._devices.sample()
        return self._devices.list(), samples

    def _is_held_elsewhere(self, uuid: DeviceUuid) -> bool:
        if self._table.leases_on(uuid):
            return False
        try:
            return self._locks.is_held_elsewhere(uuid)
        except PoolError as error:
            # Whoever cannot look at the lock could not take it either.
            self._lock_problems[uuid] = str(error)
            return True

    def _judged(self) -> Mapping[str, object]:
        wrong = {uuid: (s.lost, s.problems) for uuid, s in self.samples.items()}
        foreign = {uuid: {p.pid for p in found} for uuid, found in self.foreign.items() if found}
        held = (self.held_elsewhere, self._lock_problems)
        silent, dirty = bool(self.problem), self._dirty()
        return {"wrong": wrong, "foreign": foreign, "held": held, "silent": silent, "dirty": dirty}
