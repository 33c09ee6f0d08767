"""Whose processes a claim is, which token a host joined with, and which token made which.

A claim that was granted before keeps the user it had: the one mapped, else the one of its name.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add what is missing."""
    op.add_column("claims", sa.Column("os_user", sa.String(200)))
    op.add_column("claims", sa.Column("avoid", sa.Text))
    op.add_column("tokens", sa.Column("made_by", sa.String(40)))
    op.create_table(
        "host_tokens",
        sa.Column("host_id", sa.String(200), primary_key=True),
        sa.Column("token_id", sa.String(40), nullable=False),
    )
    op.execute(
        "UPDATE claims SET os_user = COALESCE("
        "(SELECT users.os_user FROM users WHERE users.name = claims.owner), owner)"
        " WHERE start > 0"
    )
