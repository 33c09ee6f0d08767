"""Which leaf each lease is charged to, in the books: pure.

Called when the books are loaded and when another policy moves claims to other queues.
"""

from collections import Counter
from collections.abc import Iterator

from .accounting import with_held
from .books import Books
from .records import UsageRecord
from .unit import UnitOfWork


def held_anew(view: Books | UnitOfWork, now_s: float) -> Iterator[UsageRecord]:
    """The records of users that hold more or less by the leases than by what was charged."""
    held: Counter[str] = Counter()
    for lease in view.leases.values():
        record = view.claims.get(lease.claim_id)
        if record is not None:
            held[view.policy.leaf_of(record.claim)] += lease.thousandths
    half_life_s = view.policy.policy.rules.half_life_s
    known = dict(view.usage.items())
    for leaf in sorted(held.keys() | known.keys()):
        used = known.get(leaf) or UsageRecord(leaf=leaf)
        if used.decayed.held != held[leaf]:
            yield with_held(used, held[leaf], now_s, half_life_s=half_life_s)
