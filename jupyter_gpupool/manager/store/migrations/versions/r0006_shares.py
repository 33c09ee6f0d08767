"""Leases of parts of a device, and of several devices; no device is ever held beyond one.

A lease has a row for each of its devices. What was one lease a device is now a sum that the
database itself watches: a trigger, for neither SQLite nor PostgreSQL can say it as a constraint.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_BEYOND_ONE = """
    (SELECT COALESCE(SUM(share), 0) FROM leases
     WHERE device = NEW.device AND phase <> 'ended'
       AND NOT (id = NEW.id AND position = NEW.position)) + NEW.share > 1000
"""
_SQLITE = """
CREATE TRIGGER {name} BEFORE {when} ON leases
WHEN NEW.phase <> 'ended' AND {beyond}
BEGIN SELECT RAISE(ABORT, 'CHECK constraint failed: no device beyond one'); END
"""
_POSTGRESQL = f"""
CREATE FUNCTION no_device_beyond_one() RETURNS trigger AS $$
BEGIN
    -- Two transactions at once do not see each other's rows, so they take turns at a device.
    PERFORM pg_advisory_xact_lock(hashtext(NEW.device));
    IF NEW.phase <> 'ended' AND {_BEYOND_ONE} THEN
        RAISE EXCEPTION 'no device beyond one' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$ LANGUAGE plpgsql
"""


def upgrade() -> None:
    """Make the table anew, for its key grows; what is held was whole devices so far."""
    _make_table("leases_anew")
    op.execute(
        "INSERT INTO leases_anew (id, position, claim_id, host_id, device, share, phase,"
        " granted_at, ended_at, body) SELECT id, 0, claim_id, host_id, device, 1000, phase,"
        " granted_at, ended_at, body FROM leases"
    )
    op.drop_table("leases")
    op.rename_table("leases_anew", "leases")
    op.create_index("leases_by_claim", "leases", ["claim_id"])
    held = sa.text("phase <> 'ended'")
    op.create_index(
        "held_by_device", "leases", ["device"], sqlite_where=held, postgresql_where=held
    )
    _watch_sums(op.get_bind().dialect.name)


def _make_table(name: str) -> None:
    op.create_table(
        name,
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("claim_id", sa.String(40), nullable=False),
        sa.Column("host_id", sa.String(200), nullable=False),
        sa.Column("device", sa.String(200), nullable=False),
        sa.Column("share", sa.Integer, nullable=False),
        sa.Column("phase", sa.String(20), nullable=False),
        sa.Column("granted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("body", sa.Text, nullable=False),
        sa.CheckConstraint("share BETWEEN 1 AND 1000", name="share_of_a_device"),
    )


def _watch_sums(dialect: str) -> None:
    if dialect == "sqlite":
        for name, when in (("new_lease", "INSERT"), ("changed_lease", "UPDATE")):
            op.execute(_SQLITE.format(name=name, when=when, beyond=_BEYOND_ONE))
    else:
        op.execute(_POSTGRESQL)
        op.execute(
            "CREATE TRIGGER no_device_beyond_one BEFORE INSERT OR UPDATE ON leases"
            " FOR EACH ROW EXECUTE FUNCTION no_device_beyond_one()"
        )
