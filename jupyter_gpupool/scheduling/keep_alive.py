"""A user keeps a claim that looks idle: for how long at a time, and how often in a day.

Called when a user asks for it. A keep postpones whatever is taken as idle; what a claim may hold
devices at all is not postponed.
"""

from dataclasses import replace

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.idle_rule import Ground, KeepAlive
from jupyter_gpupool.pool.units import format_duration

from .idle_grounds import in_ms
from .idle_watch import DAY_MS, Keep, Watch


def kept(watch: Watch, bounds: KeepAlive, for_ms: int, reason: str) -> Watch:
    """The watch of a claim that is kept from now on; no time at all takes the last keep back.

    What is left of an earlier keep is given up for the new one, and counts no more. The bounds are
    those of the rule that decides on the claim now, the reason is its user's own.

    Raises:
        BadRequest: If it is too long, too much for a day, or lacks a reason.
    """
    before = _given_up(watch)
    if not for_ms:
        return replace(watch, keeps=before)
    if for_ms > in_ms(bounds.longest_s):
        raise BadRequest(
            f"A claim can be kept for {_shown(in_ms(bounds.longest_s))} at a time.",
            field="for_s",
            hint="Ask for less, or release the claim.",
        )
    if bounds.reason and not reason.strip():
        raise BadRequest(
            "The policy asks why this claim should be kept.",
            field="reason",
            hint="Say it in a few words.",
        )
    left_ms = in_ms(bounds.per_day_s) - _of_the_day(before, watch.now_ms)
    if for_ms > left_ms:
        raise BadRequest(
            f"Of the {_shown(in_ms(bounds.per_day_s))} a day that claims can be kept,"
            f" {_shown(max(0, left_ms))} are left.",
            field="for_s",
            hint="Ask for less, or let it hibernate and resume it.",
        )
    keeps = (*before, Keep(at_ms=watch.now_ms, for_ms=for_ms))
    warned = watch.warned if watch.warned and watch.warned.ground is Ground.HELD_LONG else None
    return replace(watch, keeps=keeps, warned=warned)


def longest_ms(watch: Watch, bounds: KeepAlive) -> int:
    """For how long a claim can be kept from now on; what is left of an earlier keep is given up."""
    left_ms = in_ms(bounds.per_day_s) - _of_the_day(_given_up(watch), watch.now_ms)
    return max(0, min(in_ms(bounds.longest_s), left_ms))


def _given_up(watch: Watch) -> tuple[Keep, ...]:
    """The keeps as they are if the last one ends now."""
    if not watch.is_kept:
        return watch.keeps
    *earlier, last = watch.keeps
    used_ms = watch.now_ms - last.at_ms
    return (*earlier, replace(last, for_ms=used_ms)) if used_ms else tuple(earlier)


def _of_the_day(keeps: tuple[Keep, ...], now_ms: int) -> int:
    """How much of the last 24 hours was kept."""
    begin_ms = now_ms - DAY_MS
    return sum(keep.until_ms - max(keep.at_ms, begin_ms) for keep in keeps)


def _shown(length_ms: int) -> str:
    return format_duration(length_ms / 1000)
