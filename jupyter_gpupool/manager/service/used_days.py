"""What each claim held, used and gave back on each day (UTC), of what the database keeps: pure.

Called by the store: for the report, and once for each day that is over, so that the claims of that
day still count when they are forgotten.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.event import Event, EventKind
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Sample
from jupyter_gpupool.scheduling.used_time import (
    MOST_WON_S,
    QUARTER_S,
    DeviceTime,
    Stretch,
    device_time,
    won_back,
)

DAY_S = 86_400
QUARTERS_A_DAY = DAY_S // QUARTER_S
_GONE_WITHIN_S = 600.0
"""A lease that ends so soon after its claim was taken for idleness ended because of that."""
_TAKEN = frozenset({EventKind.CLAIM_HIBERNATING, EventKind.CLAIM_ENDING, EventKind.CLAIM_ENDED})
TELLING = _TAKEN | {EventKind.CLAIM_RESUMING, EventKind.CLAIM_CHANGED}
"""Events that tell what was taken, and who came back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedDay:
    """What one claim held, used and gave back on one day.

    Attributes:
        day: Days since 1970 (UTC).
        quarters: By the number of the quarter of an hour since 1970.
    """

    claim_id: ClaimId
    owner: UserName
    queue: str
    day: int
    quarters: Mapping[int, DeviceTime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the database keeps of the days in question, and of the hours before them."""

    claims: Sequence[Claim]
    leases: Sequence[Lease]
    samples: Sequence[tuple[ClaimId, Sample]]
    events: Sequence[Event]


def used_days(kept: Kept, begin_day: int, end_s: float) -> Iterator[UsedDay]:
    """What each claim did from the first moment of a day until `end_s`, day by day."""
    leases, samples, events = _by_claim(kept)
    created_s: defaultdict[UserName, list[float]] = defaultdict(list)
    for claim in kept.claims:
        created_s[claim.owner].append(claim.created_at.timestamp())
    for claim in kept.claims:
        held = [_held(lease, end_s) for lease in leases[claim.id]]
        story = events[claim.id]
        back_s = [each.at.timestamp() for each in story if each.kind is EventKind.CLAIM_RESUMING]
        won = won_back(
            _taken(claim, leases[claim.id], story, end_s), created_s[claim.owner] + back_s
        )
        yield from _days(claim, device_time(held, samples[claim.id], tuple(won)), begin_day, end_s)


def _days(
    claim: Claim, quarters: Mapping[int, DeviceTime], begin_day: int, end_s: float
) -> Iterator[UsedDay]:
    days: defaultdict[int, dict[int, DeviceTime]] = defaultdict(dict)
    for quarter, used in quarters.items():
        day = quarter // QUARTERS_A_DAY
        if day >= begin_day and quarter * QUARTER_S < end_s:
            days[day][quarter] = used
    for day, within in sorted(days.items()):
        queue = claim.request.queue
        yield UsedDay(claim_id=claim.id, owner=claim.owner, queue=queue, day=day, quarters=within)


def _held(lease: Lease, now_s: float) -> Stretch:
    end_s = now_s if lease.holds_device else min(now_s, lease.phase_since.timestamp())
    share = lease.share * len(lease.devices)
    return Stretch(begin_s=lease.granted_at.timestamp(), end_s=end_s, share=share)


def _taken(
    claim: Claim, leases: Iterable[Lease], story: Iterable[Event], now_s: float
) -> Iterator[Stretch]:
    """What was taken for idleness, from the end of each lease to the claim's own time limit."""
    takings = [event.at.timestamp() for event in story if _takes(event)]
    limit, started = claim.request.time_limit, claim.started_at
    until_s = now_s if limit is None or started is None else (started + limit).timestamp()
    for lease in leases:
        held = _held(lease, now_s)
        soon = any(0.0 <= held.end_s - at_s <= _GONE_WITHIN_S for at_s in takings)
        if soon and not lease.holds_device:
            end_s = min(until_s, now_s, held.end_s + MOST_WON_S)
            yield Stretch(begin_s=held.end_s, end_s=end_s, share=held.share)


def _takes(event: Event) -> bool:
    """Whether it tells of a taking for idleness; a warning has its evidence, too."""
    if event.evidence is None:
        return False
    shrinks = event.evidence.action is OnIdle.SHRINK and event.kind is EventKind.CLAIM_CHANGED
    return shrinks or event.kind in _TAKEN


def _by_claim(
    kept: Kept,
) -> tuple[
    Mapping[ClaimId, list[Lease]], Mapping[ClaimId, list[Sample]], Mapping[ClaimId, list[Event]]
]:
    leases: defaultdict[ClaimId, list[Lease]] = defaultdict(list)
    samples: defaultdict[ClaimId, list[Sample]] = defaultdict(list)
    events: defaultdict[ClaimId, list[Event]] = defaultdict(list)
    for lease in kept.leases:
        leases[lease.claim_id].append(lease)
    for claim_id, sample in kept.samples:
        samples[claim_id].append(sample)
    for event in kept.events:
        if event.claim_id is not None:
            events[event.claim_id].append(event)
    return leases, samples, events
