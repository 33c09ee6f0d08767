"""From a claim to its card: pure, time and language are passed in. Called by `widget`.

It says what the pool has told and nothing else: an estimate, a use or a count that nobody knows is
left out, and what was true a while ago says so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from jupyter_gpupool.notebook.moments import counted, roughly
from jupyter_gpupool.notebook.warned import unkept_keys
from jupyter_gpupool.notebook.workers import devices_text
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.units import format_bytes, plural
from jupyter_gpupool.protocol.api import ClaimView, DeviceView, LeaseView, WaitView
from jupyter_gpupool.protocol.warned import WarningView

from .card import Act, Button, Card, Confirm, DeviceRow, Figure, Line, Look, Notice, Stepper
from .idle_words import IDLE_WORDS, why_text
from .keeping_button import keep_button
from .text import Text, joined, text
from .words import WORDS, Language, Words

MOST_ROWS = 8
"""Devices beyond these are counted, not listed."""
_STEADY = {
    Phase.PENDING: Look.WAITING,
    Phase.RUNNING: Look.RUNNING,
    Phase.HIBERNATED: Look.HIBERNATED,
}
_SEPARATOR = " · "
_CARD = TypeAdapter(Card)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A claim as last heard of.

    Attributes:
        devices: By UUID, those that are known of its leases' devices.
        at: When this was true.
        is_live: Whether a change would be heard of.
    """

    view: ClaimView
    devices: Mapping[str, DeviceView]
    at: datetime
    is_live: bool = True


def card_of(snapshot: Snapshot, now: datetime, language: Language) -> Card:
    """The card of a claim."""
    view, words = snapshot.view, WORDS[language]
    look = look_of(view)
    is_over = view.phase is Phase.ENDED
    return Card(
        claim=view.id,
        language=language,
        look=look,
        name=view.name,
        label=words.label.format(name=view.name, state=_word(view, words)),
        state=_state(view, now, words),
        as_of=snapshot.at,
        is_old=not snapshot.is_live and not is_over,
        note=() if snapshot.is_live or is_over else text(words.silent, clock=snapshot.at),
        figures=_figures(snapshot, words),
        devices=tuple(_row(lease, snapshot, words) for lease in _held(view)[:MOST_ROWS]),
        lines=_lines(view, words),
        notice=None if look is not Look.WARNED else _notice(view, language),
        head=_head(look, words),
        stepper=_stepper(view, words) if look is Look.RUNNING else None,
        foot=_foot(view, look, words),
        dashboards=words.dashboards if view.phase is Phase.RUNNING else "",
        units=words.units,
        gone=text(words.gone, clock=snapshot.at),
        busy=words.busy,
    )


def cards_in_json(snapshot: Snapshot, now: datetime) -> dict[str, Any]:
    """The card in every language, as a browser gets it."""
    return {
        language: _CARD.dump_python(card_of(snapshot, now, language), mode="json")
        for language in Language
    }


def look_of(view: ClaimView) -> Look:
    """The claim's state as it is seen."""
    if view.phase is Phase.RUNNING and view.warning is not None:
        return Look.WARNED
    if view.phase is Phase.ENDED and view.end is not None:
        return Look(view.end.value)
    return _STEADY.get(view.phase, Look.CHANGING)


def _word(view: ClaimView, words: Words) -> str:
    if view.phase is Phase.ENDED and view.end is not None:
        return words.ends[view.end]
    return words.phases[view.phase]


def _state(view: ClaimView, now: datetime, words: Words) -> Text:
    word = _word(view, words)
    if view.phase is Phase.PENDING:
        return text(words.waiting_for, shape=_asked(view, words))
    if view.phase is Phase.STARTING:
        return text(words.starting, word=word, **_progress(view))
    if view.phase is Phase.RUNNING:
        return _running(view, now, words)
    if view.phase in (Phase.HIBERNATED, Phase.ENDED):
        template = words.since if view.phase is Phase.HIBERNATED else words.ended_at
        return text(template, word=word, clock=view.phase_since)
    return (word,)


def _progress(view: ClaimView) -> dict[str, str | int | datetime | None]:
    up = sum(lease.phase is LeasePhase.RUNNING for lease in view.leases)
    count = max(1, view.workers.min)
    return {"granted": up, "count": count, "workers": plural(count, "worker")}


def _running(view: ClaimView, now: datetime, words: Words) -> Text:
    if view.warning is not None:
        return text(words.goes_back, clock=view.warning.deadline)
    kept = view.kept_until is not None and view.kept_until > now
    return joined(
        text(words.running, age=view.started_at or view.phase_since),
        text(words.until, clock=view.expires_at) if view.expires_at else (),
        text(words.kept_until, clock=view.kept_until) if kept else (),
        by=_SEPARATOR,
    )


def _figures(snapshot: Snapshot, words: Words) -> tuple[Figure, ...]:
    wait = snapshot.view.wait
    if wait is None or wait.never:
        return ()
    # A place changes without an event of this claim, so it is true of a time only.
    note = text(words.as_of, clock=snapshot.at)
    place = Figure(caption=words.in_line, value=(words.nth(wait.place),), note=note)
    return (place, *_start(wait, snapshot.at, words))


def _start(wait: WaitView, now: datetime, words: Words) -> Iterator[Figure]:
    """When it is thought to start, if anybody knows."""
    if wait.starts_at is None:
        return
    at, by = (roughly(moment or now, now) for moment in (wait.starts_at, wait.starts_by))
    late = text(words.nine_in_ten, clock=by) if by > at else ()
    learned = (words.learned,) if wait.starts_learned else ()
    note = joined(late, learned, by=_SEPARATOR)
    yield Figure(caption=words.start, value=text(words.about, clock=at), note=note)


def _lines(view: ClaimView, words: Words) -> tuple[Line, ...]:
    if view.phase is Phase.RUNNING:
        keys = unkept_keys(view.keeping)
        unkept = (Line(text=text(words.unkept, keys=keys)),) if keys else ()
        beyond = (Line(text=(said,), is_dim=True) for said in _beyond_rows(view, words) if said)
        problem = (Line(text=(view.problem,)),) if view.problem else ()
        return (*problem, *_own_wish(view), *unkept, *beyond)
    if view.wait is not None:
        never = text(words.never, reason=view.wait.reason)
        return (Line(text=never if view.wait.never else (view.wait.reason,)), *_own_wish(view))
    reason = (Line(text=(view.reason,)),) if view.reason else ()
    return (*_kept(view, words), *reason)


def _own_wish(view: ClaimView) -> tuple[Line, ...]:
    return (Line(text=(view.own_wish,)),) if view.own_wish else ()


def _kept(view: ClaimView, words: Words) -> tuple[Line, ...]:
    """What is kept of a claim that hibernates, and until when."""
    keeping, until = view.keeping, view.expires_at
    if view.phase is not Phase.HIBERNATED or keeping is None or until is None:
        return ()
    said = text(
        words.results_kept,
        results=plural(keeping.held, "result"),
        count=keeping.held,
        size=format_bytes(keeping.held_bytes),
        clock=until,
    )
    return (Line(text=said),)


def _beyond_rows(view: ClaimView, words: Words) -> tuple[str, str]:
    unlisted = len(_held(view)) - MOST_ROWS
    missing = view.workers.max - len(counted(view))
    shape = _shape(missing, _model(view), words)
    return (
        words.more_devices.format(count=unlisted) if unlisted > 0 else "",
        words.missing.format(shape=shape) if missing > 0 else "",
    )


def _row(lease: LeaseView, snapshot: Snapshot, words: Words) -> DeviceRow:
    known = snapshot.devices.get(lease.device)
    return DeviceRow(
        place=lease.host if known is None else f"{lease.host}{_SEPARATOR}{known.device.index}",
        model=_short(lease),
        memory="" if known is None else format_bytes(known.device.memory_bytes),
        state=words.leases[lease.phase],
        title=lease.reason,
    )


def _notice(view: ClaimView, language: Language) -> Notice:
    words, warning = WORDS[language], view.warning
    assert warning is not None, "a warned claim has its warning"
    keep = keep_button(warning.keep, IDLE_WORDS[language])
    return Notice(
        what=_what(view, warning, language),
        when=_when(warning, language),
        why=joined((_why_warned(warning, language),), text(words.rule, rule=warning.rule), by=" "),
        buttons=(*((keep,) if keep else ()), _release(view, words.release_now, words)),
    )


def _what(view: ClaimView, warning: WarningView, language: Language) -> Text:
    words, held = WORDS[language], counted(view)
    if warning.action is OnIdle.SHRINK:
        return text(IDLE_WORDS[language].shrinks, clock=warning.deadline)
    template = words.takes_one if len(held) == 1 else words.takes_many
    return text(template, shape=_holding(view, words), clock=warning.deadline)


def _when(warning: WarningView, language: Language) -> Text:
    outcome = "" if warning.action is None else IDLE_WORDS[language].outcomes[warning.action]
    return (*text(WORDS[language].takes_in, left=warning.deadline), *((outcome,) * bool(outcome)))


def _why_warned(warning: WarningView, language: Language) -> str:
    if warning.evidence is None:
        return warning.reason
    return why_text(warning.evidence, IDLE_WORDS[language], WORDS[language].units)


def _head(look: Look, words: Words) -> tuple[Button, ...]:
    if look is Look.WAITING:
        cancel = Button(act=Act.CANCEL, label=words.cancel, title=words.cancel_title, is_quiet=True)
        return (cancel,)
    if look is Look.HIBERNATED:
        resume = Button(
            act=Act.RESUME, label=words.resume, title=words.resume_title, is_primary=True
        )
        return (resume,)
    return ()


def _foot(view: ClaimView, look: Look, words: Words) -> tuple[Button, ...]:
    has_release = view.phase in (Phase.STARTING, Phase.RUNNING, Phase.HIBERNATED, Phase.RESUMING)
    # A notice has the button already.
    if not has_release or look is Look.WARNED:
        return ()
    release = _release(view, words.release, words)
    if look is not Look.RUNNING:
        return (release,)
    hibernate = Button(act=Act.HIBERNATE, label=words.hibernate, title=words.hibernate_title)
    return (hibernate, release)


def _release(view: ClaimView, label: str, words: Words) -> Button:
    question = words.release_ask.format(shape=_holding(view, words))
    return Button(
        act=Act.RELEASE,
        label=label,
        title=words.release_title,
        confirm=Confirm(question=question, yes=words.release, no=words.stay),
    )


def _stepper(view: ClaimView, words: Words) -> Stepper:
    granted = words.granted.format(granted=len(counted(view)), wanted=view.workers.max)
    return Stepper(
        caption=words.workers,
        wanted=view.workers.max,
        granted=granted,
        fewer=words.fewer,
        fewer_title=words.fewer_title if view.workers.max > 1 else words.last_one,
        more=words.more,
        more_title=words.more_title,
    )


def _held(view: ClaimView) -> tuple[LeaseView, ...]:
    return tuple(lease for lease in view.leases if lease.phase is not LeasePhase.ENDED)


def _asked(view: ClaimView, words: Words) -> str:
    return _shape(max(1, view.workers.min), view.model, words)


def _holding(view: ClaimView, words: Words) -> str:
    models = Counter(_short(lease) for lease in counted(view))
    shapes = [_shape(count, model, words) for model, count in sorted(models.items())]
    return " + ".join(shapes) or view.name


def _model(view: ClaimView) -> str:
    models = {_short(lease) for lease in counted(view)}
    return view.model or (models.pop() if len(models) == 1 else "")


def _shape(count: int, model: str, words: Words) -> str:
    return f"{count} × {model or words.any_model}"


def _short(lease: LeaseView) -> str:
    return devices_text(lease, lease.model.removeprefix("NVIDIA "))
