"""What happens between passes, entered into books that are kept: claims, hosts, users, time.

The passes over them are in `kept_books`. Each change leaves word of what a pass has to look at: who
is untried, where something was given back, whose shares may be others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.rules import SurplusOrder

from .fitting import Sieve
from .inventory import Spot
from .ledger import Ledger, Member
from .looking import Looking
from .pool_view import ClaimView, PoolView
from .queues import QueueTree, link
from .reserving import Reserving
from .shape import HostShape
from .victims import Holders
from .waiters import Waiters
from .waiting_line import Known

if TYPE_CHECKING:
    from .tree_shares import TreeShares


class BooksBetweenPasses:
    """The books of a pool in fair-share order, as far as no pass is needed to change them.

    Args:
        view: The pool as it is now.
        looking: The look that is under way; whatever changes what it sees stops it.
    """

    def __init__(self, view: PoolView, looking: Looking) -> None:
        if view.rules.surplus_order is not SurplusOrder.FAIR_SHARE:
            raise ValueError(f"books of {view.rules.surplus_order} are kept by ServiceBooks")
        self.ledger = Ledger(view)
        self.usage: Mapping[str, float] = view.usage
        self._shares: TreeShares | None = None
        self._asked: dict[int, dict[ClaimId, Member]] = {}
        members = self.ledger.members.values()
        for member in members:
            self._asked.setdefault(member.leaf, {})[member.view.id] = member
        self._promised = {member.view.id: member for member in members if member.promised}
        self._waiters, self._holders = Waiters(members), Holders(self.ledger)
        self._reserving = Reserving(self.ledger, self._waiters)
        self._sieve = Sieve()
        self._known = Known(standings=self._waiters.standings)
        self._looking = looking
        self._untried: dict[ClaimId, Member] = {}
        self._leaves: dict[int, None] = {}
        self._freed = 0
        self._is_changed = self._has_happened = True
        self._loosen_all()

    def arrive(self, claim: ClaimView) -> None:
        """Let a claim wait, or hold and be promised what its view says."""
        self._looking.stop()
        member = self.ledger.add(claim)
        if claim.promised:
            self.ledger.enter_promise(member)
        self._asked.setdefault(member.leaf, {})[claim.id] = member
        self._happened(member)

    def end(self, claim_id: ClaimId) -> None:
        """Let a claim end and give back what it holds and was promised.

        Raises:
            KeyError: There is no such claim.
        """
        self._looking.stop()
        member = self.ledger.members[claim_id]
        held = (*member.spots, *member.promised)
        self.ledger.remove(member)
        del self._asked[member.leaf][claim_id]
        self._promised.pop(claim_id, None)
        self._untried.pop(claim_id, None)
        self._leaves[member.leaf] = None
        self._has_happened = True
        self._enter((member,))
        self._waiters.leave(member)
        self._reserving.gone(member)
        if held:
            self._loosen(bays_of(held))
            self._is_changed = True

    def change(self, claim: ClaimView) -> None:
        """Let a claim be as its view says now. Raises KeyError if there is none."""
        self.end(claim.id)
        self.arrive(claim)

    def update(self, claim: ClaimView) -> bool:
        """Let a claim be as its view says now, as long as it holds and is promised the same.

        Returns:
            False if it does not, or stands elsewhere: it has to end and arrive again, after all
            whose devices it may hold now have ended.

        Raises:
            KeyError: There is no such claim.
        """
        member = self.ledger.members[claim.id]
        if claim is member.view:
            return True
        before = self._as_it_stands(member)
        if claim == before:
            member.view = claim
            return True
        if _lasting(claim) != _lasting(before):
            return False
        self._looking.stop()
        expected = self.ledger.expected
        expected[claim.worker] += max(1, claim.minimum) - max(1, before.minimum)
        member.view = claim
        member.recount()
        self._happened(member)
        # Where its scheduler is, and for whom it still waits, is its own affair.
        own = replace(before, scheduler_host=claim.scheduler_host, awaits=claim.awaits)
        self._is_changed |= claim != own
        return True

    def _as_it_stands(self, member: Member) -> ClaimView:
        held, promised = map(self.ledger.named, (member.spots, member.promised))
        return replace(member.view, held=held, promised=promised)

    def join(self, tree: QueueTree, usage: Mapping[str, float]) -> None:
        """Let users have leaves that had none; those whom a tree leaves out keep an empty one.

        Args:
            tree: As the one that is kept, but for leaves of users.
            usage: As for `charge`, of the queues of this tree.
        """
        ledger = self.ledger
        new = [queue for name, queue in tree.queues.items() if name not in ledger.number]
        if new:
            ledger.grow(link(tree.kinds, [*ledger.tree.queues.values(), *new]))
            self._holders = Holders(ledger)
            self._is_changed = True
        # Whoever claims nothing counts for nothing, and is not in the way of those who do.
        self.charge({name: used for name, used in usage.items() if name in tree.queues})

    def see(self, host: HostShape) -> bool:
        """Let a host be as it is now, with what is held there.

        Returns:
            False if it is new or its devices are others: the books have to be made anew then.
        """
        ledger, inventory = self.ledger, self.ledger.inventory
        number = inventory.host_number(host.id)
        if number is None:
            return False
        before, free_before = inventory.hosts[number], self._free_on(number)
        if before == host:
            return True
        self._looking.stop()
        if not inventory.replace(host):
            return False
        self._reserving.freed()
        self._is_changed = True
        if _offered(before) != _offered(host):
            ledger.measure()
            self._shares, self._holders = None, Holders(ledger)
            self._known = Known(standings=self._waiters.standings)
            self._loosen_all()
        elif any(map(_is_more, free_before, self._free_on(number))):
            self._loosen(inventory.layout.bays_on(host.id))
        return True

    def _free_on(self, host: int) -> list[tuple[int, dict[int, int]]]:
        """In each bay of a host the whole devices, and what is left of others, by number."""
        inventory = self.ledger.inventory
        bays = map(inventory.bays.__getitem__, inventory.bays_of(host))
        return [(bay.whole, dict(bay.open_parts())) for bay in bays]

    def advance(self, now_s: float) -> None:
        """Let time pass: young claims may be asked once they are no longer protected."""
        if now_s == self.ledger.now_s:
            return
        self._looking.stop()
        self._has_happened = True
        self._is_changed |= self.ledger.protects
        self.ledger.now_s = now_s

    def charge(self, usage: Mapping[str, float]) -> None:
        """Let the decayed usage of queues be what it is now; all is divided anew."""
        self._looking.stop()
        self.usage, self._shares = usage, None

    # What follows from a change

    def _happened(self, member: Member) -> None:
        """A claim is there, or is other than before."""
        self._untried[member.view.id] = member
        self._leaves[member.leaf] = None
        self._has_happened = True
        self._is_changed |= bool(member.spots or member.promised)
        self._enter((member,))

    def _enter(self, members: Iterable[Member]) -> None:
        """Let the lists of those who wait, hold and are promised show these claims as they are."""
        for member in members:
            self._waiters.note(member)
            self._holders.changed(member)
            self._reserving.changed(member)
            if member.promised:
                self._promised[member.view.id] = member
            else:
                self._promised.pop(member.view.id, None)

    def _loosen(self, bays: int) -> None:
        """Something in these bays was given back."""
        self._sieve.forget(self.ledger.inventory, bays)
        self._reserving.freed()
        self._freed |= bays

    def _loosen_all(self) -> None:
        self._loosen(self._everywhere)

    @property
    def _everywhere(self) -> int:
        return (1 << len(self.ledger.inventory.bays)) - 1


def bays_of(spots: Iterable[Spot]) -> int:
    """The bays of some spots, a bit for each."""
    bays = 0
    for spot in spots:
        bays |= 1 << spot.bay
    return bays


def _is_more(before: tuple[int, dict[int, int]], now: tuple[int, dict[int, int]]) -> bool:
    """Whether anything is free in a bay that was not before."""
    (whole, parts), (whole_now, parts_now) = before, now
    gained = any(left > parts.get(number, 0) for number, left in parts_now.items())
    return gained or bool(whole_now & ~whole)


def _lasting(claim: ClaimView) -> tuple[object, ...]:
    """What of a claim decides where it stands in the books, and what it has there."""
    terms = (claim.queue, claim.owner, claim.worker, claim.firm)
    return (*terms, claim.held, claim.promised)


def _offered(host: HostShape) -> tuple[object, ...]:
    """What of a host is there to be shared out."""
    counted = tuple(device.counts for device in host.devices)
    return host.takes_more, host.cpu, host.memory_bytes, counted
