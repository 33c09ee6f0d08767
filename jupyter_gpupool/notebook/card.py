"""A claim as text and as HTML that need nothing to be live: what stands below a cell for good.

Called by `cluster` and `widget`, for terminals, exported and untrusted notebooks. Pure. It says
when it was true, for nothing in it changes afterwards.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

from jupyter_gpupool.pool.claim import WAITING, Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.hibernation import KEPT_RESULTS
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.api import ClaimView, LeaseView

from . import markup
from .moments import (
    clock,
    counted,
    hosts_text,
    place_text,
    shape,
    starts_text,
    wanted,
    workers_text,
)
from .warned import unkept_keys, warning_sentence
from .workers import devices_text

_UUID_SHOWN = 12


class CardState(StrEnum):
    """What a card tells first; the value is its `data-state`."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    WARNED = "warned"
    HIBERNATING = "hibernating"
    HIBERNATED = "hibernated"
    RESUMING = "resuming"
    ENDING = "ending"
    RELEASED = "released"
    EXPIRED = "expired"
    RECLAIMED = "reclaimed"
    CANCELLED = "cancelled"
    FAILED = "failed"


_OVER = frozenset(CardState(kind) for kind in EndKind)
_WORDS = {CardState.PENDING: "Waiting", CardState.WARNED: "Running"}


def card_state(view: ClaimView) -> CardState:
    """What the card of a claim tells first."""
    if view.phase is Phase.ENDED:
        return CardState(view.end or EndKind.RELEASED)
    if view.phase is Phase.RUNNING and view.warning is not None:
        return CardState.WARNED
    return CardState(view.phase)


def card_text(view: ClaimView, now: datetime) -> str:
    """A claim in two or three lines, without a live figure."""
    lines = [f"gpupool claim {view.name}: {_headline(view, now)}"]
    if view.warning is not None and view.phase is not Phase.ENDED:
        lines.append(_goes_back(view, now))
    if keys := unkept_keys(view.keeping):
        lines.append(f"Cannot be kept: {keys}")
    lines += said_of(view)
    as_of = f"as of {clock(now, now)}"
    lines.append(as_of.capitalize() if _is_told(view) else f"{_detail(view)} · {as_of}")
    return "\n".join(lines)


def card_html(view: ClaimView, now: datetime) -> str:
    """The same as a card, in JupyterLab's own colours."""
    state = card_state(view)
    head = markup.text(view.name, bold=True) + markup.text(_state_text(view, now), dim=True)
    return markup.card(
        head,
        _warning(view, now) + _said(view) + _body(view),
        markup.text(_foot(view, now)),
        data_state=state,
        aria_label=f"Claim {view.name}, {_word(state).lower()}",
        **{"class": "gp gp-Card"},
    )


def _word(state: CardState) -> str:
    return _WORDS.get(state, state.capitalize())


def _headline(view: ClaimView, now: datetime) -> str:
    state = card_state(view)
    word = _word(state).lower()
    if view.phase in WAITING:
        return ", ".join((f"{word} for {wanted(view)}", *_in_line(view, now)))
    if state in _OVER:
        return f"{word} {clock(view.phase_since, now)}"
    if state is CardState.HIBERNATED:
        return f"{word} since {clock(view.phase_since, now)}"
    return word if state is CardState.ENDING else f"{word}, {workers_text(view)}"


def _in_line(view: ClaimView, now: datetime) -> Iterator[str]:
    if view.wait is not None:
        yield from filter(None, (place_text(view.wait),))
        if starts := starts_text(view.wait, now):
            yield starts


def _at_work(view: ClaimView) -> tuple[LeaseView, ...]:
    return () if view.phase in (Phase.ENDING, Phase.ENDED) else counted(view)


def _detail(view: ClaimView) -> str:
    if view.phase in WAITING:
        return _why(view)
    leases = _at_work(view)
    return f"{shape(view)} on {hosts_text(leases)}" if leases else view.reason.rstrip(".")


def _why(view: ClaimView) -> str:
    return (view.reason if view.wait is None else view.wait.reason).rstrip(".")


def _state_text(view: ClaimView, now: datetime) -> str:
    state = card_state(view)
    if state in (CardState.RUNNING, CardState.WARNED):
        age = format_duration(now - (view.started_at or view.phase_since))
        until = f" · until {clock(view.expires_at, now)}" if view.expires_at else ""
        return f"{_word(state)} {age}{until}"
    headline = _headline(view, now)
    return headline[:1].upper() + headline[1:]


def _goes_back(view: ClaimView, now: datetime) -> str:
    assert view.warning is not None, "asked for only when there is one"
    return warning_sentence(view.warning, now, view.keeping)


def _is_told(view: ClaimView) -> bool:
    """Whether its warning says all that could be said of it, as while it hibernates."""
    if view.warning is None or view.phase is Phase.ENDED or _at_work(view):
        return False
    return view.phase not in WAITING and view.warning.reason == view.reason


def _warning(view: ClaimView, now: datetime) -> str:
    if view.warning is None or view.phase is Phase.ENDED:
        return ""
    is_ours = view.warning.rule == KEPT_RESULTS
    rule = "" if is_ours else markup.text(f" Rule {view.warning.rule}", dim=True)
    return markup.element("p", markup.text(_goes_back(view, now), bold=True) + rule, "margin:0")


def said_of(view: ClaimView) -> Iterator[str]:
    """What its user has to know besides: what keeps it from its work, and whose word counts."""
    yield from filter(None, (view.problem, view.own_wish))


def _said(view: ClaimView) -> str:
    lines = (markup.text(said, bold=True) for said in said_of(view))
    return "".join(markup.element("p", line, "margin:0") for line in lines)


def _body(view: ClaimView) -> str:
    leases = _at_work(view)
    if not leases and _is_told(view):
        return ""
    if not leases:
        return markup.element("p", markup.text(_why(view)), "margin:0")
    return markup.table((), [_row(lease) for lease in leases])


def _row(lease: LeaseView) -> tuple[str, ...]:
    what = devices_text(lease, lease.model)
    return lease.host, what, lease.device[:_UUID_SHOWN], lease.phase


def _foot(view: ClaimView, now: datetime) -> str:
    as_of = f"As of {clock(now, now)}"
    return f"{workers_text(view).capitalize()} · {as_of}" if _at_work(view) else as_of
