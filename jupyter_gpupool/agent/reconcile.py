"""What has to be done so that this host runs what it should, and nothing else. Pure.

Called by `host.HostAgent` after everything that happens; `carry_out` does what is said here. It is
level-triggered: it looks at what is wanted and what is, never at what changed, so a lost, repeated
or late message changes nothing. What is surplus stops before what is missing starts.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, UserName
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.protocol.keeping import Wish
from jupyter_gpupool.protocol.launch import Orders, Role

from .keys import ProcessKey
from .seen import GOING, Seen, Stage
from .wanted import Wanted, WantedProcess

MOST_HOLDERS_STARTING = 4
"""At a time and of one owner: when all their claims hibernate together, nobody else must wait for
that. It is counted by owner, for a holder whose scheduler is wedged may never register."""
ORPHANED_WORKER_S = 15.0
"""How long workers outlive their scheduler when the manager does not end them first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something to do about one process."""

    key: ProcessKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop(Action):
    """End it with all that belongs to it, then free its device.

    Attributes:
        ends_claim: Nothing of its claim is wanted any more, so it has nothing to hand over.
    """

    ends_claim: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp(Action):
    """End it, but keep it in the reports as failed: it is still wanted."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRetired(Action):
    """It should hand over and go, and it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(Action):
    """Fork it."""

    wanted: WantedProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell(Action):
    """Give it new orders."""

    orders: Orders


Rows = Mapping[ProcessKey, Seen]


def difference(wanted: Wanted, seen: Rows, now_s: float) -> Sequence[Action]:
    """All that has to be done now; empty when the host is as it should be."""
    missing = tuple(_missing(wanted, seen))
    return (
        *_surplus(wanted, seen),
        *_orphaned(wanted, seen, now_s),
        *missing,
        *_untold(wanted, seen, there=seen.keys() | {action.key for action in missing}),
    )


def _surplus(wanted: Wanted, seen: Rows) -> Iterator[Action]:
    for key, process in seen.items():
        if key not in wanted.processes and process.stage not in GOING:
            yield Stop(key=key, ends_claim=key.claim_id not in wanted.claims)


def _orphaned(wanted: Wanted, seen: Rows, now_s: float) -> Iterator[Action]:
    for key in wanted.processes:
        worker, scheduler = seen.get(key), seen.get(key.scheduler)
        if key.role is Role.SCHEDULER or worker is None or scheduler is None:
            continue
        if worker.stage in (Stage.ALIVE, Stage.AGAIN) and _failed_long_ago(scheduler, now_s):
            yield GiveUp(key=key, reason="Its claim's scheduler is gone.")


def _failed_long_ago(scheduler: Seen, now_s: float) -> bool:
    failed_at_s = scheduler.failed_at_s
    return failed_at_s is not None and now_s - failed_at_s >= ORPHANED_WORKER_S


def _missing(wanted: Wanted, seen: Rows) -> Iterator[Action]:
    begun: Counter[DeviceUuid] = Counter()
    there_is = _occupied(seen)
    starting = Counter(_owners_of_starting_holders(wanted, seen))
    for key, process in wanted.processes.items():
        there = seen.get(key)
        if there is not None and there.stage is not Stage.AGAIN:
            continue
        if process.retires:
            yield MarkRetired(key=key)
        elif key.role is Role.HOLDER and starting[process.claim.owner] >= MOST_HOLDERS_STARTING:
            continue  # one that has registered is news, and lets the next one start
        elif not _has_lost_its_scheduler(key, seen) and not _is_blocked(process, there_is, begun):
            if key.role is Role.HOLDER:
                starting[process.claim.owner] += 1
            begun.update(dict.fromkeys(process.devices, process.share))
            yield Start(key=key, wanted=process)


def _owners_of_starting_holders(wanted: Wanted, seen: Rows) -> Iterator[UserName]:
    for key, process in wanted.processes.items():
        there = seen.get(key)
        if key.role is Role.HOLDER and there is not None and _is_starting(there):
            yield process.claim.owner


def _is_starting(seen: Seen) -> bool:
    is_young = seen.stage is Stage.ALIVE and not seen.registered
    return is_young or seen.stage is Stage.FORKING


def _has_lost_its_scheduler(key: ProcessKey, seen: Rows) -> bool:
    scheduler = seen.get(key.scheduler)
    return scheduler is not None and scheduler.key != key and scheduler.stage is Stage.FAILED


@dataclass(frozen=True, slots=True)
class _Occupied:
    """What there is already, found without a look at every process for each one that is missing.

    Attributes:
        starts: Of which starts a claim has schedulers here.
        shares: Who has how much of a device, in thousandths.
    """

    starts: Mapping[ClaimId, set[int]]
    shares: Mapping[DeviceUuid, Mapping[ProcessKey, int]]


def _occupied(seen: Rows) -> _Occupied:
    starts: defaultdict[ClaimId, set[int]] = defaultdict(set)
    shares: defaultdict[DeviceUuid, dict[ProcessKey, int]] = defaultdict(dict)
    for key, process in seen.items():
        if key.role is Role.SCHEDULER:
            starts[key.claim_id].add(key.start)
        for uuid in process.devices:
            shares[uuid][key] = process.share
    return _Occupied(starts, shares)


def _is_blocked(
    process: WantedProcess, there_is: _Occupied, begun: Mapping[DeviceUuid, int]
) -> bool:
    """Whether another process has to be gone first: on its devices, or of an earlier start."""
    key = process.key
    if there_is.starts.get(key.claim_id, set()) - {key.start}:
        return True
    # Should the manager ever want more of a device than there is, the last ones wait.
    return any(
        process.share + begun.get(uuid, 0) + _others_share(there_is, uuid, key) > WHOLE_DEVICE
        for uuid in process.devices
    )


def _others_share(there_is: _Occupied, uuid: DeviceUuid, key: ProcessKey) -> int:
    holders = there_is.shares.get(uuid, {})
    return sum(share for other, share in holders.items() if other != key)


def _untold(wanted: Wanted, seen: Rows, there: Collection[ProcessKey]) -> Iterator[Action]:
    """`there` is what is there, or is about to be."""
    for key, process in wanted.processes.items():
        row = seen.get(key)
        if row is None or row.stage is not Stage.ALIVE:
            continue
        told = row.orders or Orders()
        orders = process.orders(_scheduler_address(process, seen))
        if _must_wait(process, orders, there):
            orders = replace(orders, wish=told.wish, quota_bytes=told.quota_bytes)
        if orders != told:
            yield Tell(key=key, orders=orders)


def _must_wait(process: WantedProcess, orders: Orders, there: Collection[ProcessKey]) -> bool:
    """Whether a scheduler hears the wish to hibernate later: once its holder starts.

    All of them and their workers at once would keep every core from the agent's link.
    """
    hibernates = process.key.role is Role.SCHEDULER and orders.wish is Wish.HIBERNATED
    has_holder = process.claim.holder is None or process.key.holder in there
    return hibernates and not has_holder


def _scheduler_address(process: WantedProcess, seen: Rows) -> str | None:
    here = seen.get(process.key.scheduler)
    if here is not None and here.listens:
        return here.address
    return process.claim.scheduler_address
