"""Whether results that are to be kept have room on their host, and among their owner's: pure.

Asked for claims that hibernate (`hosts`, `desired`), and of those that are warned beforehand. What
a claim is given room for counts from then on, so claims that hibernate together share it rightly.
"""

from collections.abc import Iterator

from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.hibernation import HibernationTerms
from jupyter_gpupool.pool.units import format_bytes

from .kept_results import keeping_of_claim
from .records import ClaimRecord
from .standing import View


def waits_for_room(claim: Claim, terms: HibernationTerms) -> bool:
    """Whether nothing of it may be moved yet: where it goes, others' results count as well."""
    kept = claim.hibernation
    asks = claim.phase is Phase.HIBERNATING and kept is not None and kept.room_bytes is None
    return asks and terms.is_shared


def no_room(view: View, record: ClaimRecord, nbytes: int) -> str:
    """Why so many bytes of a claim's results cannot be kept; "" if they can."""
    terms = view.policy.policy.hibernation
    if not terms.is_shared:
        return ""
    return next(_objections(view, record, nbytes, terms), "")


def _objections(
    view: View, record: ClaimRecord, nbytes: int, terms: HibernationTerms
) -> Iterator[str]:
    mine, others = record.claim, list(_others(view, record))
    here = sum(n for claim, n in others if _host_of(claim) == _host_of(mine))
    of_owner = sum(n for claim, n in others if claim.owner == mine.owner)
    where = "the host of its scheduler keeps for all claims (quota_per_host)"
    whose = f"the pool keeps for {mine.owner} (quota_per_user)"
    bounds = ((terms.host_bytes, here, where), (terms.user_bytes, of_owner, whose))
    for most, taken, what in bounds:
        if most is not None and taken + nbytes > most:
            yield (
                f"they take {format_bytes(nbytes)}, and of the {format_bytes(most)} that {what},"
                f" {format_bytes(max(0, most - taken))} are left"
            )


def _others(view: View, record: ClaimRecord) -> Iterator[tuple[Claim, int]]:
    """Each other claim whose results are kept, or have been given room."""
    for other in view.placed():
        claim = other.claim
        if claim.id != record.claim.id and claim.hibernation is not None and not claim.is_over:
            yield claim, _counted_bytes(view, other)


def _counted_bytes(view: View, record: ClaimRecord) -> int:
    kept, said = record.claim.hibernation, keeping_of_claim(view, record)
    held = 0 if said is None else said.held_bytes
    if kept is None or record.claim.phase is not Phase.HIBERNATING:
        # Its host may be silent; what was kept then is there still.
        return held if said is not None or kept is None else kept.result_bytes
    return max(held, kept.room_bytes or 0)


def _host_of(claim: Claim) -> str:
    return "" if claim.scheduler is None else claim.scheduler.host_id
