"""Filling the books from the database at start."""

from dataclasses import replace

from jupyter_gpupool.manager.store.reading import Everything
from jupyter_gpupool.pool.host import HostPhase

from .books import Books
from .emptying import Announced
from .hub import Hub
from .last_policy import policy_at_start
from .taking_back import RESERVATION
from .used import held_anew


def load(everything: Everything, books: Books, hub: Hub, now_s: float) -> None:
    """Make the books as they were last committed. No host has been heard yet."""
    books.claims.update((record.claim.id, record) for record in everything.claims)
    books.leases.update((lease.id, lease) for lease in everything.leases)
    for host in everything.hosts:
        silent = HostPhase.SILENT if host.phase is HostPhase.CONNECTED else host.phase
        books.hosts[host.id] = replace(host, phase=silent)
    books.host_tokens.update((bound.host_id, bound) for bound in everything.host_tokens)
    books.tokens.update((token.id, token) for token in everything.tokens)
    books.users.update((user.name, user) for user in everything.users)
    books.once.update(((record.user, record.key), record) for record in everything.once)
    books.seq = everything.events[-1].seq if everything.events else 0
    books.index_leases(everything.leases, [])
    books.index_claims(everything.claims)
    books.index_tokens(everything.tokens, [])
    books.live.update(record.claim.owner for record in everything.claims)
    books.usage.update((record.leaf, record) for record in everything.usage)
    watches = {record.claim_id: record for record in everything.watches}
    books.watches.update(watches)
    books.kept_watches.update(watches)
    books.reservations.update((made.id, made) for made in everything.reservations)
    for claim in (record.claim for record in everything.claims):
        if (
            claim.warning is not None
            and claim.warning.rule == RESERVATION
            and claim.warning.evidence is None
        ):
            said = Announced(claim_id=claim.id, notice=None, deadline=claim.warning.deadline)
            books.announced[claim.id, ""] = said
    books.policy = policy_at_start(everything.policies)
    books.usage.update((record.leaf, record) for record in list(held_anew(books, now_s)))
    hub.fill(everything.events)
