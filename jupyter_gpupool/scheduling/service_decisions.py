"""What a pass of least attained service has decided so far, gathered into actions at its end.

Filled by `attained_service`. Who gives way and fits elsewhere in the same pass is moved, be it with
all of its workers or with those that it gives.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.units import plural

from .decisions import Decisions, Move, Take, TakeHow
from .inventory import Spot
from .ledger import Ledger, Member
from .pieces import Piece
from .wording import grant_of, promise_of

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId


@dataclass(slots=True)
class _Given:
    """What a claim has given, and for whom.

    Attributes:
        is_owed: For the claimant's guarantee, and not because it has attained less.
        goes_on: It could go on without.
    """

    member: Member
    claimant: Member
    is_owed: bool
    spots: list[Spot] = field(default_factory=list)
    goes_on: bool = False


class ServiceDecisions:
    """Grants, takes, moves and promises, each claim once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._granted: dict[ClaimId, tuple[Member, list[Spot]]] = {}
        self._promised: dict[ClaimId, tuple[Member, list[Spot]]] = {}
        self._given: dict[ClaimId, _Given] = {}
        # By bay, the devices of which anything was given.
        self._freeing: dict[int, int] = {}

    def grant(self, member: Member, spots: tuple[Spot, ...]) -> None:
        """A claim gets these: now, or if others have just given any of it, once they are freed."""
        is_promised = member.view.id in self._promised
        if is_promised or any(spot.devices & self._freeing.get(spot.bay, 0) for spot in spots):
            self.promise(member, spots)
        else:
            self._granted.setdefault(member.view.id, (member, []))[1].extend(spots)

    def promise(self, member: Member, spots: tuple[Spot, ...]) -> None:
        """A claim gets these as soon as others have given them."""
        self._promised.setdefault(member.view.id, (member, []))[1].extend(spots)

    def take(self, piece: Piece, claimant: Member, *, is_owed: bool) -> None:
        """A claim has given these, owed to the claimant's guarantee or because of its level."""
        member = piece.member
        given = self._given.setdefault(member.view.id, _Given(member, claimant, is_owed))
        given.spots.extend(piece.spots)
        for spot in piece.spots:
            self._freeing[spot.bay] = self._freeing.get(spot.bay, 0) | spot.devices
        given.goes_on = bool(member.spots)

    def decisions(self) -> Decisions:
        """All that was decided."""
        if not (self._granted or self._promised):
            return Decisions()
        moved = {claim_id for claim_id, given in self._given.items() if self._goes_elsewhere(given)}
        ledger = self._ledger
        return Decisions(
            grants=tuple(
                grant_of(ledger, member, spots)
                for claim_id, (member, spots) in self._granted.items()
                if claim_id not in moved
            ),
            takes=tuple(
                self._take(given)
                for claim_id, given in self._given.items()
                if claim_id not in moved
            ),
            moves=tuple(self._move(self._given[claim_id]) for claim_id in sorted(moved)),
            promises=tuple(
                promise_of(ledger, member, spots)
                for claim_id, (member, spots) in self._promised.items()
                if claim_id not in moved
            ),
        )

    def _goes_elsewhere(self, given: _Given) -> bool:
        return bool(self._gets(given) if given.goes_on else given.member.spots)

    def _gets(self, given: _Given) -> list[Spot]:
        """What a claim that has given something gets in the same pass."""
        claim_id = given.member.view.id
        served = (self._granted.get(claim_id), self._promised.get(claim_id))
        return [spot for each in served if each is not None for spot in each[1]]

    def _take(self, given: _Given) -> Take:
        view, count = given.member.view, plural(len(given.spots), "worker")
        return Take(
            claim_id=view.id,
            workers=self._ledger.named(given.spots),
            how=TakeHow.SHRINK if given.goes_on else TakeHow.HIBERNATE,
            claimant=given.claimant.view.id,
            busy=not view.idle,
            reason=f"{count} needed by {_whom(given)}.",
        )

    def _move(self, given: _Given) -> Move:
        return Move(
            claim_id=given.member.view.id,
            workers=self._ledger.named(given.spots),
            to=self._ledger.named(self._gets(given) if given.goes_on else given.member.spots),
            claimant=given.claimant.view.id,
            busy=not given.member.view.idle,
            goes_on=given.goes_on,
            reason=f"Moved to make room for {_whom(given)}.",
        )


def _whom(given: _Given) -> str:
    if given.is_owed:
        return f"{given.claimant.view.queue}, which has less than it is guaranteed"
    return "a claim that has held devices for less time"
