"""What each user has used: charged with each lease that begins or ends, in its own transaction.

Called by the unit of work. Device time is exact whenever it is read, for between two changes it
grows by a formula (`scheduling.usage`) and not by samples.
"""

from dataclasses import replace
from math import inf

from jupyter_gpupool.pool.lease import WHOLE_DEVICE, Lease
from jupyter_gpupool.scheduling.queues import QueueTree
from jupyter_gpupool.scheduling.usage import Usage, charge, usage_at

from .records import UsageRecord


def charged(
    record: UsageRecord, change: int, now_s: float, *, half_life_s: float, period_s: int | None
) -> UsageRecord:
    """Note that so many thousandths of a device more, or fewer, are held from now on."""
    decayed = charge(record.decayed, change, now_s, half_life_s=half_life_s)
    started = _in_period(record.spent, now_s, period_s)
    spent = charge(started, change, now_s, half_life_s=inf)
    return replace(record, decayed=decayed, spent=spent)


def with_held(record: UsageRecord, held: int, now_s: float, *, half_life_s: float) -> UsageRecord:
    """Charge until now, and let so many thousandths be held from now on."""
    change = held - record.decayed.held
    decayed = charge(record.decayed, change, now_s, half_life_s=half_life_s)
    spent = charge(record.spent, held - record.spent.held, now_s, half_life_s=inf)
    return replace(record, decayed=decayed, spent=spent)


def service_s(lease: Lease, now_s: float) -> float:
    """Device-seconds that a claim has had of a lease until now."""
    held_s = max(0.0, now_s - lease.granted_at.timestamp())
    return held_s * lease.thousandths / WHOLE_DEVICE


def spent_s(record: UsageRecord, now_s: float, period_s: int) -> float:
    """Device-seconds used in the period that is running."""
    return usage_at(_in_period(record.spent, now_s, period_s), now_s, half_life_s=inf)


def has_budget(tree: QueueTree, queue: str, record: UsageRecord | None, now_s: float) -> bool:
    """Whether a user may be granted more in a queue, as far as the budget goes."""
    terms = tree.queues[queue].user_limits
    if terms.budget_s is None or terms.period_s is None:
        return True
    used = 0.0 if record is None else spent_s(record, now_s, terms.period_s)
    return used < terms.budget_s


def _in_period(spent: Usage, now_s: float, period_s: int | None) -> Usage:
    """What counts in the period that is running: nothing from before it began."""
    begins_s = 0.0 if period_s is None else now_s - now_s % period_s
    return spent if spent.at_s >= begins_s else replace(spent, device_s=0.0, at_s=begins_s)
