"""What each claim held and used on each day, for the report on usage."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Days that are over are summed up at the next start, as far back as is known."""
    op.create_table(
        "claim_days",
        sa.Column("claim_id", sa.String(40), primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("claim_days_by_day", "claim_days", ["day"])
