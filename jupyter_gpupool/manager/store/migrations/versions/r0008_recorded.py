"""What was seen of claims, so that another policy can be tried on it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Nothing was recorded before."""
    op.create_table(
        "recorded",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("claim_id", sa.String(40), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("recorded_by_time", "recorded", ["until"])
