"""When a claim is thought to start and how long it is thought to take, in sentences: pure.

Called by `explaining` and `estimates`. What was learned is said to be.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from jupyter_gpupool.manager.service.forecasts import Start
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.scheduling.expected import Expected, Source

_SOON = timedelta(seconds=5)


def starts_in_words(
    start: Start | None, expected: Expected | None, deadline: datetime | None, now: datetime
) -> Iterator[str]:
    """Sentences on when a waiting claim starts, what that rests on, and its own length."""
    if start is None:
        yield "When it starts cannot be told: too little is known of how long others go on."
    else:
        learned = "; how long claims take was learned from past ones" if start.is_learned else ""
        yield f"It is thought to start {_when(start, now)}{learned}."
    if expected is not None and expected.source not in (Source.SAID, Source.UNKNOWN):
        took = format_duration(expected.median_s or 0.0)
        yield f"It is thought to take {took}, {expected}."
    if deadline is not None and misses_deadline(start, expected, deadline):
        yield f"Its deadline, {_from_now(deadline, now)}, is thought to be missed."


def misses_deadline(start: Start | None, expected: Expected | None, deadline: datetime) -> bool:
    """Whether a claim is thought not to be done by then."""
    takes_s = 0.0 if expected is None else expected.median_s or 0.0
    return start is not None and (deadline - start.at).total_seconds() < takes_s


def _when(start: Start, now: datetime) -> str:
    if start.at - now < _SOON:
        return "now"
    soon, late = (format_duration(moment - now) for moment in (start.at, start.by))
    return f"in {soon}" if soon == late else f"in {soon}, with nine in ten within {late}"


def _from_now(moment: datetime, now: datetime) -> str:
    apart = format_duration(abs(moment - now))
    return f"in {apart}" if moment > now else f"{apart} ago"
