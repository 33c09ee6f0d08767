"""What a pass has decided, as actions with the sentence that their people read."""

from collections.abc import Sequence
from functools import lru_cache

from jupyter_gpupool.pool.units import plural

from .decisions import Grant, Move, Promise, Take, TakeHow
from .inventory import Spot
from .ledger import Ledger, Member
from .pieces import Piece


def grant_of(ledger: Ledger, member: Member, spots: Sequence[Spot]) -> Grant:
    """These spots as a grant."""
    workers = ledger.named(spots)
    hosts = len({worker.host_id for worker in workers})
    devices = sum(len(worker.devices) for worker in workers)
    return Grant(claim_id=member.view.id, workers=workers, reason=_granted(devices, hosts))


@lru_cache(maxsize=1024)
def _granted(devices: int, hosts: int) -> str:
    return f"{plural(devices, 'device')} on {plural(hosts, 'host')} granted."


def promise_of(ledger: Ledger, claimant: Member, spots: Sequence[Spot]) -> Promise:
    """These spots as a promise."""
    return Promise(
        claim_id=claimant.view.id,
        workers=ledger.named(spots),
        reason="Its devices are being freed for it.",
    )


def take_of(ledger: Ledger, given: Sequence[tuple[Piece, Member]]) -> Take:
    """All that one claim gives back in a pass, which is at least something."""
    member, claimant = given[0][0].member, given[0][1]
    view = member.view
    spots = [spot for piece, _ in given for spot in piece.spots]
    ends = TakeHow.HIBERNATE if view.can_hibernate else TakeHow.RELEASE
    return Take(
        claim_id=view.id,
        workers=ledger.named(spots),
        how=TakeHow.SHRINK if member.spots else ends,
        claimant=claimant.view.id,
        busy=not view.idle,
        reason=_why(ledger, member, claimant, len(spots)),
    )


def _why(ledger: Ledger, member: Member, claimant: Member, count: int) -> str:
    workers = plural(count, "worker")
    if member.view.has_overrun(ledger.now_s):
        queue = claimant.view.queue
        return f"It ran longer than expected on lent devices, which a claim of {queue} needs."
    if claimant.leaf == member.leaf:
        return f"{workers} needed by a claim of higher priority of the same user."
    return (
        f"{workers} needed by {claimant.view.queue}, which has less than its share;"
        f" {member.view.queue} has more."
    )


def move_of(
    ledger: Ledger, claimant: Member, piece: Piece, spots: Sequence[Spot], *, goes_on: bool
) -> Move:
    """A claim's way to another place; it `goes_on` if it keeps other workers meanwhile."""
    return Move(
        claim_id=piece.member.view.id,
        workers=ledger.named(piece.spots),
        to=ledger.named(spots),
        claimant=claimant.view.id,
        busy=not piece.member.view.idle,
        goes_on=goes_on,
        reason=f"Moved so that a claim of {claimant.view.queue} fits.",
    )
