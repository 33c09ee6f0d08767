"""Revisions of the policy, what each user has used, and what a claim is promised."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add what is missing. What was used before counts for nothing."""
    op.add_column("claims", sa.Column("promised", sa.Text))
    op.create_table(
        "policies",
        sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.String(200), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
    )
    op.create_table(
        "usage",
        sa.Column("leaf", sa.String(410), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
