"""What an operator may set, once, as plain values: read from `app.py`, carried everywhere."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the service behaves. Every value is explained where it is set, in `app.py`.

    Attributes:
        run_as_users: Claims run as their owner's operating system user; else as the agent's own.
        shrink_within_s: How long a scheduler may take to choose workers when a claim is scaled
            down; then the youngest go.
    """

    host_lost_after_s: float = 30.0
    longest_life: timedelta = timedelta(days=30)
    orphan_after_s: float = 3600.0
    retention: timedelta = timedelta(days=30)
    run_as_users: bool = True
    shrink_within_s: float = 30.0
