"""The books of least attained service: who waits, who holds what, and the next moment of each.

They stand on a ledger and may live on from pass to pass: whoever keeps them tells what happens
between passes. `attained_service.decide` takes a pass over them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from jupyter_gpupool.pool.ids import ClaimId

from .inventory import Spot
from .ledger import Ledger, Member, Turn
from .pieces import Piece
from .pool_view import ClaimView
from .served import Served, served_from
from .service_holders import ServiceHolders
from .service_line import ServiceLine


class ServiceBooks:
    """The claims of a pool by the service they have attained.

    Attributes:
        line: Those who wait.
        holders: Those who hold devices.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.line = ServiceLine()
        self.holders = ServiceHolders(ledger)
        self._claims: dict[ClaimId, Served] = {}
        self._moments: list[tuple[float, ClaimId, int]] = []
        self._turned: list[Member] = []
        self._promised = [member for member in ledger.members.values() if member.promised]
        for member in ledger.members.values():
            self._enter(member)

    # What happens between passes

    def add(self, claim: ClaimView) -> None:
        """Let a claim wait, or hold what its view says."""
        self._enter(self.ledger.add(claim))

    def _enter(self, member: Member) -> None:
        served = served_from(member, self.ledger.now_s, self.ledger.rules)
        self._claims[member.view.id] = served
        self._count(served)

    def remove(self, claim_id: ClaimId) -> None:
        """Let a claim end and give back what it holds.

        Raises:
            KeyError: There is no such claim.
        """
        served = self._claims.pop(claim_id)
        self.holders.leave(served)
        self.line.leave(served)
        self.ledger.remove(served.member)
        self.holders.changed(served.top)

    def advance(self, now_s: float) -> None:
        """Let time pass; claims may step to their next level."""
        self.ledger.now_s = now_s
        while (at_s := self.next_s) is not None and at_s <= now_s:
            served = self._claims[heappop(self._moments)[1]]
            self._uncount(served)
            self._count(served)

    @property
    def next_s(self) -> float | None:
        """When a pass may decide otherwise though nothing happens but time; None if never."""
        while self._moments:
            at_s, claim_id, moment = self._moments[0]
            served = self._claims.get(claim_id)
            if served is not None and served.moment == moment:
                return at_s
            heappop(self._moments)
        return None

    # What a pass does

    def grant(self, member: Member, spots: Iterable[Spot]) -> None:
        """Let a claim hold these free spots."""
        served = self._claims[member.view.id]
        self._uncount(served)
        if not member.spots:
            self._start(served)
        self.ledger.grant(member, spots)
        self._turn(member, Turn.SERVED)
        self._count(served)

    def fulfil(self, member: Member) -> None:
        """Let a claim hold what it was promised."""
        served = self._claims[member.view.id]
        self._uncount(served)
        if not member.spots:
            self._start(served)
        self.ledger.fulfil(member)
        self._turn(member, Turn.SERVED)
        self._count(served)

    def take(self, piece: Piece) -> None:
        """Let a claim give these spots back."""
        served = self._claims[piece.member.view.id]
        self._uncount(served)
        self.ledger.take(piece.member, piece.spots)
        self._turn(piece.member, Turn.GAVE)
        self._count(served)

    def level(self, member: Member) -> int:
        """How many levels a claim has passed, as counted last."""
        return self._claims[member.view.id].level

    def promised(self) -> Sequence[Member]:
        """Those for whom devices are being freed, as the books were made."""
        return [member for member in self._promised if member.promised]

    def settle(self) -> None:
        """End a pass: from now on whoever got or gave something may be asked again."""
        for member in self._turned:
            member.turn = Turn.NONE
        self._turned.clear()
        self.ledger.settle()

    def _start(self, served: Served) -> None:
        served.started_s = self.ledger.now_s
        if self.ledger.protects:
            member = served.member
            member.view = replace(member.view, started_s=self.ledger.now_s)

    def _turn(self, member: Member, turn: Turn) -> None:
        member.turn = turn
        self._turned.append(member)

    def _uncount(self, served: Served) -> None:
        """Count a claim no more, before it changes, and what it has held until now."""
        self.holders.leave(served)
        served.bring_to(self.ledger.now_s, self.ledger.rules.levels)

    def _count(self, served: Served) -> None:
        """Count a claim as it is now."""
        now_s = self.ledger.now_s
        self.holders.enter(served, now_s)
        self.line.enter(served)
        served.moment += 1
        at_s = served.next_moment_s(now_s, self.ledger.rules)
        if at_s is not None:
            heappush(self._moments, (at_s, served.member.view.id, served.moment))
