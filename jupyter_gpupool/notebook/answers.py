"""What the pool answers to a person's questions, with a text and an HTML view of its own.

Made by `asking` and `in_use`. Each is also what it was before: a sequence of views, or a view.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, cast

from jupyter_gpupool.pool.units import parse_duration, plural
from jupyter_gpupool.protocol.api import ClaimView, StatusView
from jupyter_gpupool.protocol.bodies import View
from jupyter_gpupool.protocol.estimates import ComingView
from jupyter_gpupool.protocol.reserving import ReservationView
from jupyter_gpupool.protocol.using import (
    OWN_ENVIRONMENT,
    EnvironmentView,
    ExplanationView,
    LogsView,
    ProcessLog,
)
from jupyter_gpupool.protocol.warned import WarnedView

from . import markup
from .card import card_html, card_text
from .listing import Listing
from .moments import (
    clock,
    counted,
    here_and_now,
    hosts_text,
    ordinal,
    place_text,
    shape,
    starts_text,
)
from .next_cell import heard
from .terms import Duration
from .warned import warning_sentence

if TYPE_CHECKING:
    from jupyter_gpupool.client.pool_client import PoolClient

_V = TypeVar("_V", bound=View)
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PACKAGES_SHOWN = ("python", "dask", "distributed", "numpy")


class Claims(Listing[ClaimView]):
    """Claims, newest first as the pool lists them."""

    __slots__ = ()
    columns = ("NAME", "STATE", "DEVICES", "HOSTS", "SINCE", "REASON")
    nothing = "You hold no claim."

    def row(self, view: ClaimView) -> Sequence[str]:
        """One claim."""
        since = clock(view.phase_since, here_and_now())
        hosts = hosts_text(counted(view))
        return view.name, _state(view), shape(view), hosts, since, _reason(view)


class ClaimAsItWas(ClaimView):
    """A claim at the moment of the answer."""

    def __repr__(self) -> str:
        return card_text(self, here_and_now())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return card_html(self, here_and_now())


class Environments(Listing[EnvironmentView]):
    """The Python environments that workers can run in."""

    __slots__ = ()
    columns = ("NAME", "HOSTS", "VERSIONS", "PROBLEM")
    nothing = "The pool offers no environment yet: no host has joined it."

    def row(self, view: EnvironmentView) -> Sequence[str]:
        """One environment."""
        name = f"{view.name} (default)" if view.is_default else view.name
        return name, ", ".join(view.hosts), _versions(view), view.problem


class PoolStatus(StatusView):
    """The pool in one look, and who you are to it."""

    def __repr__(self) -> str:
        return "\n".join(status_lines(self))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return markup.block(
            *(markup.element("div", markup.text(row)) for row in status_lines(self))
        )


class Explanation(ExplanationView):
    """Why a claim is where it is."""

    def __repr__(self) -> str:
        return "\n".join((self._headline(), *self._sentences()))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        sentences = "".join(
            markup.element("li", markup.text(sentence)) for sentence in self._sentences()
        )
        head = markup.element("div", markup.text(self._headline(), bold=True))
        return markup.block(head, markup.element("ul", sentences))

    def _headline(self) -> str:
        place = "" if self.place is None else f", {ordinal(self.place)} in line"
        starts = starts_text(self, here_and_now())
        about = f", {starts}" if starts else ""
        return f"Claim {self.name}: {self.phase}{place}{about}"

    def _sentences(self) -> Sequence[str]:
        return self.lines or (self.reason,)


class Logs(LogsView):
    """The last lines of a claim's processes."""

    def __repr__(self) -> str:
        parts = [(_process(log), *_lines(log)) for log in self.processes]
        return "\n".join(line for part in parts for line in part) or "There is no log yet."

    __str__ = __repr__

    def _repr_html_(self) -> str:
        parts = [
            markup.element("div", markup.text(_process(log), bold=True)) + markup.lines(_lines(log))
            for log in self.processes
        ]
        return markup.block(*(parts or [markup.text("There is no log yet.")]))


async def logs_of(client: "PoolClient", claim_id: str, process: str | None, lines: int) -> Logs:
    """The last lines of a claim's processes."""
    return _as(Logs, await client.logs(claim_id, process=process, lines=lines))


async def explanation_of(client: "PoolClient", claim_id: str) -> Explanation:
    """Why a claim is where it is."""
    return _as(Explanation, await client.explanation(claim_id))


def kept_s(duration: Duration) -> float:
    """For how many seconds a claim shall be kept; 0 takes a keep back.

    Raises:
        BadRequest: If that is no time.
    """
    is_none = duration in (0, "0", timedelta(0))
    return 0.0 if is_none else parse_duration(duration, field="duration").total_seconds()


async def kept_for(
    client: "PoolClient", claim_id: str, for_s: float, reason: str
) -> datetime | None:
    """Keep a claim and say until when, in this machine's zone; None once it is kept no more."""
    view = await client.keep_alive(claim_id, for_s, reason)
    heard(view)
    until = view.kept_until
    return None if until is None else until.astimezone()


def claim_as_it_was(view: ClaimView) -> ClaimAsItWas:
    """A claim that shows itself."""
    return _as(ClaimAsItWas, view)


async def status_of(client: "PoolClient") -> PoolStatus:
    """The pool in one look."""
    return _as(PoolStatus, await client.status())


def _as(kind: type[_V], view: View) -> _V:
    # Checked when it was read: what a newer manager added is kept out already.
    return cast("_V", kind.model_construct(**dict(view)))


def _versions(view: EnvironmentView) -> str:
    if view.name == OWN_ENVIRONMENT:
        return "whatever the kernel has that claims"
    shown = [each for each in _PACKAGES_SHOWN if each in view.versions]
    return ", ".join(f"{each} {view.versions[each]}" for each in shown)


def _state(view: ClaimView) -> str:
    place = "" if view.wait is None else place_text(view.wait)
    return f"{view.phase}, {place}" if place else view.end or view.phase


def _reason(view: ClaimView) -> str:
    if view.warning is not None:
        return warning_sentence(view.warning, here_and_now(), view.keeping)
    if view.wait is None:
        return view.problem or view.own_wish or view.reason
    starts = starts_text(view.wait, here_and_now())
    return f"{starts[:1].upper()}{starts[1:]}: {view.wait.reason}" if starts else view.wait.reason


def status_lines(status: StatusView) -> Sequence[str]:
    """The pool in a few lines."""
    kind = "simulated device" if status.simulated else "device"
    claims = f"{plural(status.running, 'claim')} running, {status.waiting} waiting"
    return (
        f"{plural(status.devices, kind)} on {plural(status.hosts, 'host')}, {status.free} free",
        f"{claims}, {status.my_claims} yours",
        *(_warned(each) for each in status.warned),
        *(_coming(each) for each in status.coming),
        *(_reserved(each) for each in status.reservations),
        *status.problems,
        f"You are {status.user} ({status.role}); the manager is version {status.version}.",
    )


def _warned(view: WarnedView) -> str:
    return f"Claim {view.name}: {warning_sentence(view.warning, here_and_now())}"


def _coming(view: ComingView) -> str:
    starts = starts_text(view, here_and_now())
    return f"Claim {view.name}: " + ", ".join(
        part for part in (f"{ordinal(view.place)} in line", starts) if part
    )


def _reserved(view: ReservationView) -> str:
    now = here_and_now()
    window = f"{clock(view.begins, now)} to {clock(view.ends, now)}"
    return f"Reserved: {plural(view.devices, 'device')} for {view.queue}, {window}"


def _process(log: ProcessLog) -> str:
    name = log.process if log.process == "scheduler" else f"worker {log.process}"
    return f"── {name} on {log.host}" if log.host else f"── {name}"


def _lines(log: ProcessLog) -> Sequence[str]:
    # A log is written by user code: it must not drive a terminal.
    cleaned = [_CONTROL.sub("?", _SEQUENCE.sub("", line)) for line in log.lines]
    return [*cleaned, *([log.problem] if log.problem else [])]
