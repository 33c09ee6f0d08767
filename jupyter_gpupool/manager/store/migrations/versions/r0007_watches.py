"""How claims are used, so that a manager that was away neither forgets nor repeats a warning."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Nobody was watched before."""
    op.create_table(
        "watches",
        sa.Column("claim_id", sa.String(40), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
