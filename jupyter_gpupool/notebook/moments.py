"""Moments and shapes as people read them, the same in every card, table and line. Pure.

Called by `card`, `answers` and whoever else shows a claim. A clock time is in the zone of the
moment it is read at.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.protocol.api import ClaimView, LeaseView

_COUNT = (LeasePhase.GRANTED, LeasePhase.RUNNING)
_A_WEEK = timedelta(days=6)
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def here_and_now() -> datetime:
    """The moment, in this machine's zone."""
    return datetime.now().astimezone()


def clock(moment: datetime, now: datetime) -> str:
    """A moment as short as it can be: "14:20", "Thu 18:00", "2026-12-24 18:00"."""
    local = moment.astimezone(now.tzinfo)
    if local.date() == now.date():
        return f"{local:%H:%M}"
    return f"{local:%a %H:%M}" if abs(local - now) < _A_WEEK else f"{local:%Y-%m-%d %H:%M}"


def ordinal(number: int) -> str:
    """A place in line: "1st", "2nd", "11th"."""
    is_teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if is_teen else _ENDINGS.get(number % 10, 'th')}"


def shape(view: ClaimView) -> str:
    """What a claim has, or what it asks for while it has nothing: "2 × A100", "1 to 4 devices"."""
    models = [lease.model for lease in counted(view)]
    return _held(models) if models else wanted(view)


def wanted(view: ClaimView) -> str:
    """What a claim asks for."""
    least, most = max(1, view.workers.min), max(1, view.workers.max)
    count = f"{least}" if least == most else f"{least} to {most}"
    if view.model:
        return f"{count} × {view.model}"
    return plural(most, "device") if least == most else f"{count} devices"


def counted(view: ClaimView) -> tuple[LeaseView, ...]:
    """The leases whose workers are there or on their way."""
    return tuple(lease for lease in view.leases if lease.phase in _COUNT)


def workers_text(view: ClaimView) -> str:
    """How many workers are there: "3 of 4 workers", "4 workers", "4 workers, 2 wanted"."""
    there = sum(lease.phase is LeasePhase.RUNNING for lease in view.leases)
    most = view.workers.max
    if view.phase is Phase.RUNNING and there == most:
        return plural(there, "worker")
    if there > most:
        return f"{plural(there, 'worker')}, {most} wanted"
    return f"{there} of {plural(most, 'worker')}"


def hosts_text(leases: Iterable[LeaseView]) -> str:
    """The hosts of leases, each once: "gpu-03, gpu-04"."""
    return ", ".join(dict.fromkeys(lease.host for lease in leases))


def _held(models: Iterable[str]) -> str:
    counts = Counter(model.removeprefix("NVIDIA ") for model in models)
    return ", ".join(f"{count} × {model}" for model, count in counts.items())
