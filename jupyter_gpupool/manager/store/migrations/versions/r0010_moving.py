"""Where claims are on their way to, and how much service they have attained."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Nobody is moving yet; what claims that live have attained counts from now on."""
    op.add_column("claims", sa.Column("moving", sa.Text))
    op.add_column("claims", sa.Column("stayed_at", sa.DateTime(timezone=True)))
    op.add_column("claims", sa.Column("served_s", sa.Float))
