"""What the policy makes of a user's wish for when a claim is idle, as they are told: pure."""

from dataclasses import replace
from datetime import datetime

from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.idle_subjects import own_wish, subject_of
from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.pool.idle_match import OwnWish, Subject
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.own_wish import what_becomes_of
from jupyter_gpupool.scheduling.idle import deciding


def wish_in_words(record: ClaimRecord, books: Books, now: datetime) -> str:
    """One sentence; "" if it is done, if its user has none, or if the claim is over."""
    wish = own_wish(record.claim.request)
    if wish == OwnWish() or record.claim.is_over:
        return ""
    leases = tuple(lease for lease in books.leases_of(record.claim.id) if lease.counts)
    subject = subject_of(books, record, leases)
    if not leases:
        subject = _as_asked(subject, record)
    return what_becomes_of(wish, deciding(books.policy.policy.idle, subject, now))


def _as_asked(subject: Subject, record: ClaimRecord) -> Subject:
    """What it will be once it has what it asks for at least."""
    request = record.claim.request
    models = (request.model,) if request.model else ()
    each = max(request.devices.count * WHOLE_DEVICE, request.devices.share)
    return replace(subject, models=models, devices=each * max(1, record.claim.bounds.minimum))
