"""Why a policy was applied, and which earlier revision it brings back."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add what is missing; of the revisions before, nobody said why."""
    op.add_column("policies", sa.Column("comment", sa.Text))
    op.add_column("policies", sa.Column("restores", sa.Integer))
