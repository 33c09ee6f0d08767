"""When too many workers of a claim have failed for another one to be started just now."""

from .books import Books
from .records import ClaimRecord
from .unit import UnitOfWork

MOST_FAILURES = 3
FAILURE_WINDOW_S = 300.0


def failures_in_window(view: Books | UnitOfWork, record: ClaimRecord, monotonic_s: float) -> int:
    """How many workers of a claim were given up lately."""
    times = view.failures.get(record.claim.id) or ()
    return sum(monotonic_s - time < FAILURE_WINDOW_S for time in times)
