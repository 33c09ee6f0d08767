"""Books that live from pass to pass: a pass looks only at what has happened since the last one.

Kept by whoever says what happens and carries out what is decided (the manager makes its books anew,
so far); nothing here knows a clock. As long as no pass has more to look for than it may, each
decides what `rounds.plan` decides of a view of the same moment; one that has more is `unfinished`,
and the next goes on.

Why so little needs to be looked at: who found no room on what is free finds none until something is
given back (`fitting`). Only the shares of queues along the paths of changed claims, and beside them
where really more or less is left, are divided anew (`tree_shares.divide_again`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.rules import SurplusOrder

from .amounts import Amount
from .backfill import keep_for_blocked
from .blocked import is_blocked
from .decisions import Decisions
from .fitting import Sieve, Sifted
from .granting import serve
from .inventory import Spot
from .kept import Kept
from .ledger import Ledger, Member, Turn
from .overrunning import searches_beside
from .pool_view import ClaimView, PoolView
from .seeking import Seeking
from .shape import HostShape
from .steps import SEARCHES, Made, keep_promises, make_room_for_each
from .tree_shares import TreeShares, divide_again, divide_tree
from .victims import Holders
from .waiters import Waiters
from .waiting_line import Known
from .workload import workload_of


class KeptBooks:
    """The books of a pool in fair-share order.

    After a pass they hold what it decided: grants are held, what is taken is free, promises wait
    until `see` shows the devices free. Between a pass and the next one `see` has to be told of each
    host on which workers are still ending.

    Args:
        view: The pool as it is now.
        searches: For so many kinds of claims a pass looks for room at most.
    """

    def __init__(self, view: PoolView, *, searches: int | None = None) -> None:
        if view.rules.surplus_order is not SurplusOrder.FAIR_SHARE:
            raise ValueError(f"books of {view.rules.surplus_order} are kept by ServiceBooks")
        self.ledger = Ledger(view)
        self._searches = searches or view.rules.most_searches
        self._usage: Mapping[str, float] = view.usage
        self._shares: TreeShares | None = None
        self._asked: dict[int, dict[ClaimId, Member]] = {}
        members = self.ledger.members.values()
        for member in members:
            self._asked.setdefault(member.leaf, {})[member.view.id] = member
        self._promised = {member.view.id: member for member in members if member.promised}
        self._waiters, self._holders = Waiters(members), Holders(self.ledger)
        self._sieve, self._seeking = Sieve(), Seeking(self.ledger)
        self._known = Known(standings=self._waiters.standings)
        self._arrived: dict[ClaimId, Member] = {}
        self._leaves: dict[int, None] = {}
        self._freed, self._is_changed = 0, True
        self._loosen_all()

    # What happens between passes

    def arrive(self, claim: ClaimView) -> None:
        """Let a claim wait, or hold what its view says."""
        member = self.ledger.add(claim)
        self._asked.setdefault(member.leaf, {})[claim.id] = member
        self._arrived[claim.id] = member
        self._happened(member)

    def end(self, claim_id: ClaimId) -> None:
        """Let a claim end and give back what it holds and was promised.

        Raises:
            KeyError: There is no such claim.
        """
        member = self.ledger.members[claim_id]
        self._loosen(_bays((*member.spots, *member.promised)))
        self.ledger.remove(member)
        del self._asked[member.leaf][claim_id]
        self._promised.pop(claim_id, None)
        self._arrived.pop(claim_id, None)
        self._happened(member)
        self._waiters.leave(member)

    def change(self, claim: ClaimView) -> None:
        """Let a claim be as its view says now. Raises KeyError if there is none."""
        self.end(claim.id)
        self.arrive(claim)

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
        if not inventory.replace(host):
            return False
        self._is_changed = True
        if _offered(before) != _offered(host):
            ledger.measure()
            self._shares, self._holders = None, Holders(ledger)
            self._known = Known(standings=self._waiters.standings)
            self._loosen_all()
        elif any(free & ~old for old, free in zip(free_before, self._free_on(number), strict=True)):
            self._loosen(inventory.layout.bays_on(host.id))
        return True

    def _free_on(self, host: int) -> list[int]:
        inventory = self.ledger.inventory
        return [inventory.bays[bay].whole for bay in inventory.bays_of(host)]

    def advance(self, now_s: float) -> None:
        """Let time pass: young claims may be asked once they are no longer protected."""
        self._is_changed |= self.ledger.protects and now_s != self.ledger.now_s
        self.ledger.now_s = now_s

    def charge(self, usage: Mapping[str, float]) -> None:
        """Let the decayed usage of queues be what it is now; all is divided anew."""
        self._usage, self._shares, self._is_changed = usage, None, True

    # The pass

    def decide(self) -> Decisions:
        """Take a pass over what has happened, and go on where the last one had not finished."""
        ledger, made = self.ledger, Made()
        stirred = self._divide()
        ledger.inventory.expect(workload_of(ledger.expected.items()))
        keep_promises(ledger, [self._promised[one] for one in sorted(self._promised)], made)
        self._enter(made.touched)
        waiting = list(self._waiters.all())
        # Who fits nowhere does not either once something is kept.
        is_kept_for = any(is_blocked(ledger, member) for member in waiting)
        sifted = Sieve().sift(ledger, waiting) if is_kept_for else None
        kept = keep_for_blocked(ledger, waiting)
        self._grant(made, kept, sifted)
        self._look_for_room(made, kept, stirred)
        kept.close()
        self._end_pass(made)
        is_unfinished = self._holders.unfinished or not self._seeking.is_done
        return replace(made.decisions(ledger), unfinished=is_unfinished)

    def _divide(self) -> Iterable[int]:
        """Enter the shares as they are now, and tell for which leaves something has happened."""
        ledger, before = self.ledger, self._shares
        if before is None:
            self._shares = divide_tree(
                ledger.tree,
                ledger.total,
                ledger.requests(),
                self._usage,
                k=ledger.rules.usage_weight,
            )
        else:
            requests = {ledger.names[leaf]: self._request(leaf) for leaf in self._leaves}
            self._shares = divide_again(before, requests)
        changed = ledger.set_shares(self._shares.shares)
        for queue in changed:
            self._holders.share_changed(queue)
        return [*self._leaves, *changed]

    def _request(self, leaf: int) -> Amount:
        return self.ledger.request(self._asked[leaf].values())

    def _grant(self, made: Made, kept: Kept, sifted: Sifted | None) -> None:
        """Serve whoever can be: anybody if something was given back, else those who are new."""
        ledger, sieve, new = self.ledger, self._sieve, self._new(made)
        if kept.reservations and sifted is not None:
            # What is kept is open to some and not to others, and to others still in the next pass.
            sieve = self._sieve = Sieve()
        elif self._is_looser:
            sifted = Sifted(self._waiters.fitting(ledger, sieve, self._freed, new), [])
        else:
            sifted = sieve.sift(ledger, new)
        granting = serve(ledger, sifted, kept, sieve, self._known)
        made.grants += granting.grants
        made.touched += granting.served
        self._enter(granting.served)

    def _new(self, made: Made) -> list[Member]:
        new = {**self._arrived, **{member.view.id: member for member in made.touched}}
        return [member for member in new.values() if member.needs and not member.promised]

    def _look_for_room(self, made: Made, kept: Kept, stirred: Iterable[int]) -> None:
        is_changed = self._is_changed or bool(made.touched)
        if is_changed:
            self._seeking.restart(stirred)
        holders = self._holders
        holders.begin(self.ledger.rules.most_searches, anew=is_changed)
        seekers = self._seeking.choose(holders, self._waiters, self._searches)
        if kept.reservations:
            seekers = list(self._waiters.all())
        self._is_looser, self._is_changed, self._freed = False, False, 0
        before = len(made.touched)
        for search in searches_beside(kept, SEARCHES):
            if not holders.unfinished:
                make_room_for_each(holders, seekers, search, made)
        self._enter(made.touched[before:])
        if kept.reservations:
            self._sieve = Sieve()
            self._loosen_all()
            self._is_changed = True

    def _end_pass(self, made: Made) -> None:
        for pieces in made.given.values():
            for piece, _ in pieces:
                self._loosen(_bays(piece.spots))
        if made.moves:
            self._loosen_all()
        for member in made.touched:
            member.turn = Turn.NONE
            if _starts_or_stops(member):
                started_s = self.ledger.now_s if member.spots else None
                member.view = replace(member.view, started_s=started_s)
                # The youngest is asked first: the order of its queue is another now.
                self._holders.changed(member)
        self._leaves = dict.fromkeys(member.leaf for member in made.touched)
        self._is_changed |= bool(made.touched)
        self._arrived.clear()
        self.ledger.settle()

    # What follows from a change

    def _happened(self, member: Member) -> None:
        self._leaves[member.leaf] = None
        self._is_changed = True
        self._enter((member,))

    def _enter(self, members: Iterable[Member]) -> None:
        """Let the lists of those who wait, hold and are promised show these claims as they are."""
        for member in members:
            self._waiters.note(member)
            self._holders.changed(member)
            if member.promised:
                self._promised[member.view.id] = member
            else:
                self._promised.pop(member.view.id, None)

    def _loosen(self, bays: int) -> None:
        """Something in these bays was given back."""
        self._sieve.forget(self.ledger.inventory, bays)
        self._freed |= bays
        self._is_looser = True

    def _loosen_all(self) -> None:
        self._loosen((1 << len(self.ledger.inventory.bays)) - 1)


def _bays(spots: Iterable[Spot]) -> int:
    bays = 0
    for spot in spots:
        bays |= 1 << spot.bay
    return bays


def _starts_or_stops(member: Member) -> bool:
    """Whether a claim's view is behind on whether it holds anything."""
    return bool(member.spots) != (member.view.started_s is not None)


def _offered(host: HostShape) -> tuple[object, ...]:
    """What of a host is there to be shared out."""
    counted = tuple(device.counts for device in host.devices)
    return host.takes_more, host.cpu, host.memory_bytes, counted
