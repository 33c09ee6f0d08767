"""What an operator may set, once, as plain values: read from `app.py`, carried everywhere."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the service behaves. Every value is explained where it is set, in `app.py`.

    Attributes:
        run_as_users: Claims run as their owner's operating system user; else as the agent's own.
        start_within_s: How long a start may take; then it has failed.
        most_claims_a_user: How many claims of one user may live at a time.
        shrink_within_s: How long a scheduler may take to choose the next worker to let go when a
            claim is scaled down; then the youngest goes.
        longest_keep_alive: For how long at a time a user may have a claim not taken as idle.
        recorded: For how long what was seen of claims is kept, for dry runs of policies.
        policy_source: The policy document to apply at the start; "" keeps the one applied last.
        policy_file: The file it was read from, and will be again at the next start; "" is none.
        retire_within_s: How long workers may take to hand over their results; then they go.
    """

    host_lost_after_s: float = 30.0
    longest_life: timedelta = timedelta(days=30)
    orphan_after_s: float = 3600.0
    retention: timedelta = timedelta(days=30)
    run_as_users: bool = True
    start_within_s: float = 120.0
    most_claims_a_user: int = 1000
    shrink_within_s: float = 30.0
    longest_keep_alive: timedelta = timedelta(hours=2)
    retire_within_s: float = 600.0
    recorded: timedelta = timedelta(days=14)
    policy_source: str = ""
    policy_file: str = ""
