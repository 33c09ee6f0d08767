"""The first tables.

Written out rather than taken from `tables.py`: a revision must not change when the tables do.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the first tables."""
    _make_claims_and_leases()
    _make_hosts_and_events()
    _make_tokens_and_keys()


def _make_claims_and_leases() -> None:
    op.create_table(
        "claims",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("phase", sa.String(20), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("sealed_env", sa.Text),
        sa.Column("sealed_secrets", sa.Text),
    )
    op.create_index("claims_by_phase", "claims", ["phase"])
    op.create_index("claims_by_owner", "claims", ["owner", "created_at"])
    op.create_table(
        "leases",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("claim_id", sa.String(40), nullable=False),
        sa.Column("host_id", sa.String(200), nullable=False),
        sa.Column("device", sa.String(200), nullable=False),
        sa.Column("phase", sa.String(20), nullable=False),
        sa.Column("granted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("leases_by_claim", "leases", ["claim_id"])
    held = sa.text("phase <> 'ended'")
    op.create_index(
        "one_lease_a_device",
        "leases",
        ["device"],
        unique=True,
        sqlite_where=held,
        postgresql_where=held,
    )


def _make_hosts_and_events() -> None:
    op.create_table(
        "hosts",
        sa.Column("id", sa.String(200), primary_key=True),
        sa.Column("phase", sa.String(20), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("owner", sa.String(200)),
        sa.Column("claim_id", sa.String(40)),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("events_by_claim", "events", ["claim_id", "seq"])


def _make_tokens_and_keys() -> None:
    op.create_table(
        "meta",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "users",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("os_user", sa.String(200)),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("user", sa.String(200), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("label", sa.String(200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("user", sa.String(200), primary_key=True),
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("body", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
