"""Moments and shapes as people read them, the same in every card, table and line. Pure.

Called by `card`, `answers` and whoever else shows a claim. A clock time is in the zone of the
moment it is read at.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from math import inf

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.units import format_bytes, plural
from jupyter_gpupool.protocol.api import ClaimView, LeaseView, WaitView
from jupyter_gpupool.protocol.estimates import StartView

from .workers import devices_text

_COUNT = (LeasePhase.GRANTED, LeasePhase.RUNNING)
_A_WEEK = timedelta(days=6)
_STEPS_S = ((600.0, 60), (3600.0, 300), (43_200.0, 900), (inf, 3600))
"""To how many seconds an estimate is told, by how far ahead it is."""
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


def roughly(moment: datetime, now: datetime) -> datetime:
    """An estimated moment, no finer than it can be known, and later rather than sooner."""
    ahead_s = max(0.0, (moment - now).total_seconds())
    step_s = next(step for within, step in _STEPS_S if ahead_s < within)
    return datetime.fromtimestamp(-(-moment.timestamp() // step_s) * step_s, moment.tzinfo)


def starts_text(view: StartView, now: datetime) -> str:
    """When a claim is thought to start, "" if nobody knows.

    "starts about 14:20 (by 14:50 with nine in ten)", and whether that was learned.
    """
    if view.starts_at is None:
        return ""
    at, by = roughly(view.starts_at, now), roughly(view.starts_by or view.starts_at, now)
    notes = [f"by {clock(by, now)} with nine in ten"] if by > at else []
    notes += ["learned from past claims"] if view.starts_learned else []
    return f"starts about {clock(at, now)}" + (f" ({', '.join(notes)})" if notes else "")


def ordinal(number: int) -> str:
    """A place in line: "1st", "2nd", "11th"."""
    is_teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if is_teen else _ENDINGS.get(number % 10, 'th')}"


def place_text(view: WaitView) -> str:
    """A place in line, "2nd in line"; "" for a claim that would not start if nobody were ahead."""
    return "" if view.never else f"{ordinal(view.place)} in line"


def shape(view: ClaimView) -> str:
    """What a claim has, or what it asks for while it has nothing: "2 × A100", "1 to 4 devices"."""
    models = [devices_text(lease, lease.model) for lease in counted(view)]
    return _held(models) if models else wanted(view)


def wanted(view: ClaimView) -> str:
    """What a claim asks for."""
    least, most = max(1, view.workers.min), max(1, view.workers.max)
    count = f"{least}" if least == most else f"{least} to {most}"
    if view.gpu_memory is not None:
        return f"{count} × {format_bytes(view.gpu_memory)} of a {view.model or 'device'}"
    if view.gpus_per_worker < 1:
        return f"{count} × {view.gpus_per_worker:g} of a {view.model or 'device'}"
    if view.gpus_per_worker > 1:
        return f"{count} × {view.gpus_per_worker:g} {view.model or 'devices'}"
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
