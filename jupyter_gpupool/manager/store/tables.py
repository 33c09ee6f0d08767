"""The tables, as the newest migration leaves them.

What is searched by is a column; the rest of a thing is one JSON text, so that a new field needs no
migration. Plain SQL types alone, for SQLite and PostgreSQL alike.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)

METADATA = MetaData()

META = Table(
    "meta",
    METADATA,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)

CLAIMS = Table(
    "claims",
    METADATA,
    Column("id", String(40), primary_key=True),
    Column("owner", String(200), nullable=False),
    Column("phase", String(20), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    Column("start", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("sealed_env", Text),
    Column("sealed_secrets", Text),
    Column("os_user", String(200)),
    Column("avoid", Text),
    Column("promised", Text),
    Column("moving", Text),
    Column("stayed_at", DateTime(timezone=True)),
    Column("served_s", Float),
    Index("claims_by_phase", "phase"),
    Index("claims_by_owner", "owner", "created_at"),
)

LEASES = Table(
    "leases",
    METADATA,
    Column("id", String(40), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("claim_id", String(40), nullable=False),
    Column("host_id", String(200), nullable=False),
    Column("device", String(200), nullable=False),
    Column("share", Integer, nullable=False),
    Column("phase", String(20), nullable=False),
    Column("granted_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    Column("body", Text, nullable=False),
    CheckConstraint("share BETWEEN 1 AND 1000", name="share_of_a_device"),
    Index("leases_by_claim", "claim_id"),
    Index(
        "held_by_device",
        "device",
        sqlite_where=text("phase <> 'ended'"),
        postgresql_where=text("phase <> 'ended'"),
    ),
)
"""One row for each device of a lease, `position` counting them; `share` is in thousandths.

The last wall against leasing a device beyond one, whatever the code above does, is a trigger that
revision 0006 makes.
"""

HOSTS = Table(
    "hosts",
    METADATA,
    Column("id", String(200), primary_key=True),
    Column("phase", String(20), nullable=False),
    Column("body", Text, nullable=False),
)

HOST_TOKENS = Table(
    "host_tokens",
    METADATA,
    Column("host_id", String(200), primary_key=True),
    Column("token_id", String(40), nullable=False),
)

EVENTS = Table(
    "events",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("owner", String(200)),
    Column("claim_id", String(40)),
    Column("body", Text, nullable=False),
    Index("events_by_claim", "claim_id", "seq"),
)

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", String(40), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("user", String(200), nullable=False),
    Column("role", String(20), nullable=False),
    Column("label", String(200), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("made_by", String(40)),
)

USERS = Table(
    "users",
    METADATA,
    Column("name", String(200), primary_key=True),
    Column("os_user", String(200)),
)

ONCE = Table(
    "idempotency_keys",
    METADATA,
    Column("user", String(200), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("body", String(64), nullable=False),
    Column("answer", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)

POLICIES = Table(
    "policies",
    METADATA,
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("by", String(200), nullable=False),
    Column("source", Text, nullable=False),
    Column("comment", Text),
    Column("restores", Integer),
)

USAGE = Table(
    "usage",
    METADATA,
    Column("leaf", String(410), primary_key=True),
    Column("body", Text, nullable=False),
)

RESERVATIONS = Table(
    "reservations",
    METADATA,
    Column("id", String(40), primary_key=True),
    Column("body", Text, nullable=False),
)

WATCHES = Table(
    "watches",
    METADATA,
    Column("claim_id", String(40), primary_key=True),
    Column("body", Text, nullable=False),
)

RECORDED = Table(
    "recorded",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("claim_id", String(40), nullable=False),
    Column("until", DateTime(timezone=True), nullable=False),
    Column("body", Text, nullable=False),
    Index("recorded_by_time", "until"),
)

CLAIM_DAYS = Table(
    "claim_days",
    METADATA,
    Column("claim_id", String(40), primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("owner", String(200), nullable=False),
    Column("queue", String(200), nullable=False),
    Column("body", Text, nullable=False),
    Index("claim_days_by_day", "day"),
)
