"""A batch's unit of work as the rows to write."""

from dataclasses import replace
from typing import TypeVar

from jupyter_gpupool.manager.store.changes import Changes
from jupyter_gpupool.pool.host import Host

from .books import Books
from .layer import Layer
from .unit import UnitOfWork

_K = TypeVar("_K")
_V = TypeVar("_V")


def changes_of(unit: UnitOfWork, books: Books) -> Changes:
    """What has to be written so that the database is as the books will be."""
    new_claims, claims = _split(unit.claims, books.claims)
    new_leases, leases = _split(unit.leases, books.leases)
    new_hosts, hosts = _split(unit.hosts, books.hosts)
    new_host_tokens, host_tokens = _split(unit.host_tokens, books.host_tokens)
    new_users, users = _split(unit.users, books.users)
    new_once, once = _split(unit.once, books.once)
    new_usage, usage = _split(unit.usage, books.usage)
    new_reservations, _ = _split(unit.reservations, books.reservations)
    new_watches, watches = _split(unit.kept_watches, books.kept_watches)
    ended = tuple(lease for lease in unit.ended_leases.values() if lease.id in books.leases)
    return Changes(
        new_claims=new_claims,
        claims=claims,
        leases=(*ended, *leases),
        new_leases=new_leases,
        new_hosts=new_hosts,
        hosts=tuple(host for host in hosts if _differs(host, books.hosts[host.id])),
        gone_hosts=_gone(unit.hosts, books.hosts),
        new_host_tokens=new_host_tokens,
        host_tokens=host_tokens,
        gone_host_tokens=_gone(unit.host_tokens, books.host_tokens),
        new_tokens=_split(unit.tokens, books.tokens)[0],
        gone_tokens=_gone(unit.tokens, books.tokens),
        new_users=new_users,
        users=users,
        gone_users=_gone(unit.users, books.users),
        new_once=new_once,
        once=once,
        new_usage=new_usage,
        usage=usage,
        gone_usage=_gone(unit.usage, books.usage),
        new_reservations=new_reservations,
        gone_reservations=_gone(unit.reservations, books.reservations),
        new_watches=new_watches,
        watches=watches,
        gone_watches=_gone(unit.kept_watches, books.kept_watches),
        new_recorded=tuple(unit.new_recorded),
        new_policies=tuple(unit.new_policies),
        events=tuple(unit.events),
    )


def _split(layer: Layer[_K, _V], below: dict[_K, _V]) -> tuple[tuple[_V, ...], tuple[_V, ...]]:
    new: list[_V] = []
    known: list[_V] = []
    for key, value in layer.changed.items():
        if value is not None:
            (known if key in below else new).append(value)
    return tuple(new), tuple(known)


def _gone(layer: Layer[_K, _V], below: dict[_K, _V]) -> tuple[_K, ...]:
    return tuple(k for k, value in layer.changed.items() if value is None and k in below)


def _differs(after: Host, before: Host) -> bool:
    # The state of its devices changes all the time and is the agent's to say, not ours to keep.
    return replace(after, states=()) != replace(before, states=())
