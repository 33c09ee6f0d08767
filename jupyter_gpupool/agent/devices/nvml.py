"""Devices as NVML sees them, through GPUs that fall off the bus and drivers that are replaced.

Opened by `opening.open_devices`. One failing device is sampled as lost; when all fail, so does
NVML, and it is opened anew until it works.
"""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pynvml

from jupyter_gpupool.pool.device import Device, DeviceSample
from jupyter_gpupool.pool.ids import DeviceUuid

from .nvml_calls import NVMLError, said
from .nvml_health import memory_problems
from .nvml_listing import Seen, list_devices, listed_uuids
from .nvml_sampling import Failure, measure
from .nvml_xids import XidWatch
from .xid_record import XidRecord

logger = logging.getLogger(__name__)

HEALTH_EVERY_S = 5.0
LIST_EVERY_S = 30.0
"""How often devices are listed again: MIG instances come and go, a lost GPU comes back."""
OPEN_EVERY_S = 2.0
"""How often NVML is tried again when it does not work."""


class NvmlDevices:
    """The host's GPUs and MIG instances.

    Nothing is raised when NVML does not work: `failure` says why, and it is tried again.

    Args:
        xid_record: Where XID errors are kept for the next agent; None keeps them nowhere.
        clock: Monotonic seconds, to know when to look at the slow things again.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, xid_record: Path | None = None
    ) -> None:
        self._clock = clock
        self._seen: dict[DeviceUuid, Seen] = {}
        self._listed: tuple[DeviceUuid, ...] = ()
        self._memory_problems: dict[DeviceUuid, tuple[str, ...]] = {}
        self._why_lost: dict[DeviceUuid, str] = {}
        self._xids = XidWatch(XidRecord(xid_record))
        self._away: set[DeviceUuid] = set()
        self._is_open = False
        self.failure: Exception | None = None
        self._open(clock())

    @property
    def notice(self) -> str:
        """One sentence while NVML does not work, else ""."""
        return "" if self.failure is None else f"NVML does not work and says {said(self.failure)}."

    def list(self) -> tuple[Device, ...]:
        """Every device seen since the start; those that NVML lists no more come last."""
        return tuple(self._seen[uuid].device for uuid in self._order())

    def sample(self) -> tuple[DeviceSample, ...]:
        """How each device is now. May open NVML anew, or find devices that appeared."""
        now_s, at = self._clock(), datetime.now(UTC)
        self._bring_up_to_date(now_s)
        if self.failure is None:
            self._look_at_health(now_s)
        answers = {uuid: self._answer(uuid, at) for uuid in self._order()}
        self._notice_failures(answers, now_s)
        return tuple(
            answer.sample(uuid, at) if isinstance(answer, Failure) else answer
            for uuid, answer in answers.items()
        )

    def close(self) -> None:
        """Let go of NVML."""
        self._xids.close()
        if self._is_open:
            self._is_open = False
            try:
                pynvml.nvmlShutdown()
            except NVMLError as error:
                logger.debug("NVML did not shut down cleanly: %s", error)

    def _open(self, now_s: float) -> None:
        """Start afresh. What NVML lists no more is kept, to be sampled as lost."""
        self.close()
        self._open_due_s = now_s + OPEN_EVERY_S
        self._list_due_s = now_s + LIST_EVERY_S
        self._health_due_s = now_s
        try:
            pynvml.nvmlInit()
            self._is_open = True
            seen = list_devices()
            self._xids.watch(seen)
        except NVMLError as error:
            self.failure = error
            return
        self.failure = None
        self._listed = tuple(found.device.uuid for found in seen)
        self._seen |= {found.device.uuid: found for found in seen}
        self._notice_listed({found.gpu_uuid for found in seen})

    def _bring_up_to_date(self, now_s: float) -> None:
        if self.failure is not None:
            if now_s >= self._open_due_s:
                self._open(now_s)
        elif now_s >= self._list_due_s:
            self._list_due_s = now_s + LIST_EVERY_S
            if self._has_changed() or len(self._seen) > len(self._listed):
                self._open(now_s)

    def _has_changed(self) -> bool:
        try:
            return listed_uuids() != self._listed
        except NVMLError:
            return True

    def _look_at_health(self, now_s: float) -> None:
        self._xids.collect()
        if now_s < self._health_due_s:
            return
        self._health_due_s = now_s + HEALTH_EVERY_S
        for uuid in self._listed:
            try:
                self._memory_problems[uuid] = memory_problems(self._seen[uuid].gpu)
            except NVMLError:
                # It shows in the sample of this very moment.
                continue

    def _order(self) -> tuple[DeviceUuid, ...]:
        gone = tuple(uuid for uuid in self._seen if uuid not in self._listed)
        return self._listed + gone

    def _answer(self, uuid: DeviceUuid, at: datetime) -> DeviceSample | Failure:
        if self.failure is not None:
            return Failure(sentence=self.notice)
        if uuid not in self._listed:
            return self._why_gone(uuid)
        found = self._seen[uuid]
        problems = (found.problem,) if found.problem else ()
        return measure(
            found,
            at,
            problems + self._xids.problems(found) + self._memory_problems.get(uuid, ()),
        )

    def _why_gone(self, uuid: DeviceUuid) -> Failure:
        found = self._seen[uuid]
        if found.is_mig and found.gpu_uuid not in self._away:
            return Failure(sentence="It is no more: its GPU was split anew.", removed=True)
        gone = "NVML lists it no more: it was removed, reset or split."
        return Failure(sentence=self._why_lost.get(uuid, gone))

    def _notice_listed(self, gpus: set[DeviceUuid]) -> None:
        """A GPU that was away and is back was reset, and what it had before is history."""
        for gpu in gpus & self._away:
            self._xids.forget(gpu)
        self._away = {found.gpu_uuid for found in self._seen.values()} - gpus

    def _notice_lost(self, failures: Mapping[DeviceUuid, Failure], now_s: float) -> None:
        """Note which GPUs are away between two listings; open anew for those that are back."""
        answering = {self._seen[u].gpu_uuid for u in self._listed if u not in failures}
        lost = (u for u in self._listed if u in failures and failures[u].of_nvml is None)
        silent = {self._seen[u].gpu_uuid for u in lost}
        is_back = bool(answering & self._away)
        self._away |= silent - answering
        if is_back:
            self._open(now_s)

    def _notice_failures(
        self, answers: dict[DeviceUuid, DeviceSample | Failure], now_s: float
    ) -> None:
        """One device that fails is broken; if each one does, NVML is, and has to be opened anew."""
        if self.failure is not None:
            return
        failures = {uuid: answer for uuid, answer in answers.items() if isinstance(answer, Failure)}
        self._why_lost = {uuid: failure.sentence for uuid, failure in failures.items()}
        self._notice_lost(failures, now_s)
        errors = [failure.of_nvml for failure in failures.values() if failure.of_nvml]
        if errors and len(failures) == len(answers):
            self.failure = errors[0]
            self._open_due_s = now_s
            logger.warning("NVML fails for every device and says %s", said(errors[0]))
