"""A warning as its user is shown it, with what can be done about it now: pure."""

from collections.abc import Iterator
from datetime import datetime

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.idle_subjects import (
    held_of,
    hibernation_possible,
    subject_of,
)
from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.pool.claim import Warning_
from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.protocol.warned import KeepView, WarnedView, WarningView
from jupyter_gpupool.scheduling.idle import deciding
from jupyter_gpupool.scheduling.idle_own_words import why_in_words
from jupyter_gpupool.scheduling.idle_watch import Watch
from jupyter_gpupool.scheduling.keep_alive import longest_ms

from .evidence_views import evidence_view

_MOST_WARNED = 5


def warning_view(
    record: ClaimRecord, books: Books, now: datetime, caller: Caller
) -> WarningView | None:
    """What its user is told, if it is under a warning."""
    warning = record.claim.warning
    if warning is None:
        return None
    leases = tuple(lease for lease in books.leases_of(record.claim.id) if lease.counts)
    held, evidence = held_of(books, leases), warning.evidence
    return WarningView(
        rule=warning.rule,
        deadline=warning.deadline,
        reason=warning.reason,
        evidence=evidence_view(evidence, caller),
        action=None if evidence is None else evidence.action,
        devices=held.devices if leases else "",
        are_several=held.several,
        why="" if evidence is None else why_in_words(evidence, held),
        keep=_keep_view(record, leases, warning, books, now),
        can_hibernate=hibernation_possible(books, record),
    )


def warned_views(caller: Caller, books: Books, now: datetime) -> tuple[WarnedView, ...]:
    """The caller's claims that are under a warning, the soonest first; the first few."""
    views = sorted(_warned(caller, books, now), key=lambda view: view.warning.deadline)
    return tuple(views[:_MOST_WARNED])


def _warned(caller: Caller, books: Books, now: datetime) -> Iterator[WarnedView]:
    mine = (record for record in books.warned() if record.claim.owner == caller.user)
    for record in mine:
        if (warning := warning_view(record, books, now, caller)) is not None:
            yield WarnedView(claim=record.claim.id, name=record.claim.name, warning=warning)


def _keep_view(
    record: ClaimRecord,
    leases: tuple[Lease, ...],
    warning: Warning_,
    books: Books,
    now: datetime,
) -> KeepView | None:
    """How it can be kept; what others need, and what it may hold at all, waits for nobody."""
    if warning.evidence is None or warning.evidence.ground is Ground.HELD_LONG:
        return None
    rule = deciding(books.policy.policy.idle, subject_of(books, record, leases), now)
    if rule is None:
        return None
    known = books.watches.get(record.claim.id)
    watch = Watch() if known is None else known.watch
    bounds = rule.keep_alive
    return KeepView(longest_s=longest_ms(watch, bounds) / 1000, asks_reason=bounds.reason)
