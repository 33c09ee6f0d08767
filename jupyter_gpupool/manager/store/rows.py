"""Things as rows, and rows as things.

A thing's JSON holds all of it but its secrets, which have sealed columns of their own. Rows that
an older version wrote are read with the defaults of fields they lack.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import RowMapping

from jupyter_gpupool.manager.auth.tokens import TokenRecord
from jupyter_gpupool.manager.certificates import ClaimSecrets
from jupyter_gpupool.manager.service.records import (
    ClaimRecord,
    HostToken,
    Moving,
    OnceRecord,
    PolicyRevision,
    RecordedUse,
    UsageRecord,
    UserRecord,
    WatchRecord,
)
from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.event import Event
from jupyter_gpupool.pool.host import Host
from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.reservation import Reservation
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.scheduling.idle_dry_run import Recorded
from jupyter_gpupool.scheduling.idle_watch import Watch
from jupyter_gpupool.scheduling.shape import HeldWorker

from .sealing import Seal

Row = Mapping[str, Any] | RowMapping

_CLAIM = TypeAdapter(Claim)
_SECRETS = TypeAdapter(ClaimSecrets)
_ENV = TypeAdapter(dict[str, str])
_LEASE = TypeAdapter(Lease)
_HOST = TypeAdapter(Host)
_EVENT = TypeAdapter(Event)
_HOSTS = TypeAdapter(frozenset[HostId])
_WORKERS = TypeAdapter(tuple[HeldWorker, ...])
_MOVING = TypeAdapter(Moving)
_USAGE = TypeAdapter(UsageRecord)
_RESERVATION = TypeAdapter(Reservation)
_WATCH = TypeAdapter(Watch)
_RECORDED = TypeAdapter(Recorded)


def claim_row(record: ClaimRecord, seal: Seal) -> Row:
    """A claim, its variables and keys sealed."""
    claim, secrets, env = record.claim, record.secrets, dict(record.claim.request.env)
    return {
        "id": claim.id,
        "owner": claim.owner,
        "phase": claim.phase.value,
        "created_at": claim.created_at,
        "ended_at": claim.phase_since if claim.phase is Phase.ENDED else None,
        "start": record.start,
        "body": _CLAIM.dump_json(claim, exclude={"request": {"env"}}).decode(),
        "sealed_env": seal.close(_ENV.dump_json(env).decode()) if env else None,
        "sealed_secrets": _sealed(secrets, seal),
        "os_user": record.os_user,
        "avoid": _HOSTS.dump_json(record.avoid).decode() if record.avoid else None,
        "promised": _WORKERS.dump_json(record.promised).decode() if record.promised else None,
        "moving": _MOVING.dump_json(record.moving).decode() if record.moving else None,
        "stayed_at": record.stayed_at,
        "served_s": record.served_s or None,
    }


def read_claim(row: Row, seal: Seal) -> ClaimRecord:
    """The claim again."""
    claim = _CLAIM.validate_json(row["body"])
    if row["sealed_env"]:
        env = _ENV.validate_json(seal.open(row["sealed_env"]))
        claim = replace(claim, request=replace(claim.request, env=env))
    sealed = row["sealed_secrets"]
    secrets = _SECRETS.validate_json(seal.open(sealed)) if sealed else None
    return ClaimRecord(
        claim=claim,
        start=row["start"],
        secrets=secrets,
        os_user=row["os_user"],
        avoid=_HOSTS.validate_json(row["avoid"]) if row["avoid"] else frozenset(),
        promised=_WORKERS.validate_json(row["promised"]) if row["promised"] else (),
        moving=_MOVING.validate_json(row["moving"]) if row["moving"] else None,
        stayed_at=row["stayed_at"] and _aware(row["stayed_at"]),
        served_s=row["served_s"] or 0.0,
    )


def lease_rows(leases: Iterable[Lease]) -> Iterator[Row]:
    """Leases, a row for each of their devices."""
    for lease in leases:
        body = _LEASE.dump_json(lease).decode()
        for position, device in enumerate(lease.devices):
            yield {
                "id": lease.id,
                "position": position,
                "claim_id": lease.claim_id,
                "host_id": lease.host_id,
                "device": device,
                "share": lease.share,
                "phase": lease.phase.value,
                "granted_at": lease.granted_at,
                "ended_at": None if lease.holds_device else lease.phase_since,
                "body": body,
            }


def read_lease(row: Row) -> Lease:
    """The lease again, from the row of any of its devices."""
    return _LEASE.validate_json(row["body"])


def host_row(host: Host) -> Row:
    """A host, without the state of its devices: that is for its agent to say anew."""
    body = _HOST.dump_json(replace(host, states=())).decode()
    return {"id": host.id, "phase": host.phase.value, "body": body}


def read_host(row: Row) -> Host:
    """The host again."""
    return _HOST.validate_json(row["body"])


def host_token_row(bound: HostToken) -> Row:
    """Which token a host joined with."""
    return {"host_id": bound.host_id, "token_id": bound.token_id}


def read_host_token(row: Row) -> HostToken:
    """It again."""
    return HostToken(**row)


def event_row(event: Event) -> Row:
    """An event."""
    return {
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind.value,
        "owner": event.owner,
        "claim_id": event.claim_id,
        "body": _EVENT.dump_json(event).decode(),
    }


def read_event(row: Row) -> Event:
    """The event again."""
    return _EVENT.validate_json(row["body"])


def token_row(token: TokenRecord) -> Row:
    """A token."""
    return {
        "id": token.id,
        "digest": token.digest,
        "user": token.user,
        "role": token.role.value,
        "label": token.label,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "made_by": token.made_by,
    }


def read_token(row: Row) -> TokenRecord:
    """The token again."""
    values = dict(row) | {"role": Role(row["role"]), "created_at": _aware(row["created_at"])}
    expires_at = row["expires_at"]
    return TokenRecord(**values | {"expires_at": expires_at and _aware(expires_at)})


def user_row(user: UserRecord) -> Row:
    """A user."""
    return {"name": user.name, "os_user": user.os_user}


def read_user(row: Row) -> UserRecord:
    """The user again."""
    return UserRecord(**row)


def once_row(record: OnceRecord) -> Row:
    """An idempotency key."""
    return {
        "user": record.user,
        "key": record.key,
        "body": record.body,
        "answer": record.answer,
        "at": record.at,
    }


def read_once(row: Row) -> OnceRecord:
    """The idempotency key again."""
    return OnceRecord(**dict(row) | {"at": _aware(row["at"])})


def policy_row(policy: PolicyRevision) -> Row:
    """A policy."""
    return {
        "revision": policy.revision,
        "at": policy.at,
        "by": policy.by,
        "source": policy.source,
        "comment": policy.comment or None,
        "restores": policy.restores,
    }


def read_policy(row: Row) -> PolicyRevision:
    """The policy again."""
    return PolicyRevision(**dict(row) | {"at": _aware(row["at"]), "comment": row["comment"] or ""})


def usage_row(record: UsageRecord) -> Row:
    """What a user has used."""
    return {"leaf": record.leaf, "body": _USAGE.dump_json(record).decode()}


def read_usage(row: Row) -> UsageRecord:
    """It again."""
    return _USAGE.validate_json(row["body"])


def reservation_row(made: Reservation) -> Row:
    """A reservation."""
    return {"id": made.id, "body": _RESERVATION.dump_json(made).decode()}


def read_reservation(row: Row) -> Reservation:
    """The reservation again."""
    return _RESERVATION.validate_json(row["body"])


def watch_row(record: WatchRecord) -> Row:
    """How a claim is used."""
    return {"claim_id": record.claim_id, "body": _WATCH.dump_json(record.watch).decode()}


def read_watch(row: Row) -> WatchRecord:
    """It again."""
    return WatchRecord(claim_id=row["claim_id"], watch=_WATCH.validate_json(row["body"]))


def recorded_row(use: RecordedUse) -> Row:
    """What was seen of a claim for a while."""
    body = _RECORDED.dump_json(use.recorded).decode()
    return {"claim_id": use.claim_id, "until": use.recorded.sample.at, "body": body}


def read_recorded(row: Row) -> RecordedUse:
    """It again."""
    recorded = _RECORDED.validate_json(row["body"])
    return RecordedUse(claim_id=row["claim_id"], recorded=recorded)


def _sealed(secrets: ClaimSecrets | None, seal: Seal) -> str | None:
    return None if secrets is None else seal.close(_SECRETS.dump_json(secrets).decode())


def _aware(time: datetime) -> datetime:
    # SQLite keeps no time zone; what we write is always UTC.
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
