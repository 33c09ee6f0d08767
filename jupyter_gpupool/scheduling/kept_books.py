"""Books that live from pass to pass: a pass looks only at what has happened since the last one.

Kept by whoever says what happens and carries out what is decided (the manager makes its books anew,
so far); nothing here knows a clock. As long as no pass has more to look for than it may, each
decides what `rounds.plan` decides of a view of the same moment; one that has more is `unfinished`,
and the next goes on.

Why so little needs to be looked at: who found no room on what is free finds none until something is
given back (`fitting`). Only the shares of queues along the paths of changed claims, and beside them
where really more or less is left, are divided anew (`tree_shares.divide_again`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from operator import or_

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.rules import SurplusOrder

from .amounts import Amount
from .decisions import Decisions
from .fitting import Sieve, Sifted
from .granting import serve
from .inventory import Spot
from .ledger import Ledger, Member, Turn
from .looking import Looking
from .overrunning import searches_beside
from .pool_view import ClaimView, PoolView
from .queues import QueueTree, link
from .reserving import Reserving
from .rounds import decide
from .seeking import FEW, Seeking
from .shape import HostShape
from .steps import SEARCHES, Made, Steps, keep_promises, make_room_for_each
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
        steps: Which steps passes take; whoever fits on what is free is served in any case.
        searches: For so many kinds of claims a pass looks for room at most.
        effort: About so many claims a pass looks at, be it one after the other or all of those of
            a few queues; None for all there are.
    """

    def __init__(
        self,
        view: PoolView,
        *,
        steps: Steps = Steps.ALL,
        searches: int | None = None,
        effort: int | None = None,
    ) -> None:
        if view.rules.surplus_order is not SurplusOrder.FAIR_SHARE:
            raise ValueError(f"books of {view.rules.surplus_order} are kept by ServiceBooks")
        self.ledger = Ledger(view)
        self.usage: Mapping[str, float] = view.usage
        self._searches = searches or view.rules.most_searches
        self._steps = [search for search in SEARCHES if search.step in steps]
        self._shares: TreeShares | None = None
        self._asked: dict[int, dict[ClaimId, Member]] = {}
        members = self.ledger.members.values()
        for member in members:
            self._asked.setdefault(member.leaf, {})[member.view.id] = member
        self._promised = {member.view.id: member for member in members if member.promised}
        self._waiters, self._holders = Waiters(members), Holders(self.ledger)
        self._reserving = Reserving(self.ledger, self._waiters)
        self._sieve, self._seeking = Sieve(), Seeking(self.ledger)
        self._known = Known(standings=self._waiters.standings)
        self._looking = Looking(self._fitting, effort)
        self._untried: dict[ClaimId, Member] = {}
        self._leaves: dict[int, None] = {}
        self._freed, self._in_vain = 0, 0
        self._is_changed = self._has_happened = True
        self._loosen_all()

    # What happens between passes

    def arrive(self, claim: ClaimView) -> None:
        """Let a claim wait, or hold what its view says."""
        self._looking.stop()
        member = self.ledger.add(claim)
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
            self._loosen(_bays(held))
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

    # The pass

    @property
    def somebody_waits(self) -> bool:
        """Whether any claim lacks something, be it that it is being freed."""
        return bool(self._waiters.standings or self._promised)

    def decide(self, *, searches: int | None = None) -> Decisions:
        """Take a pass over what has happened, and go on where the last one had not finished.

        Args:
            searches: For so many kinds of claims it looks for room, if not for as many as others.
        """
        made, ledger = Made(), self.ledger
        self._divide()
        ledger.inventory.expect(workload_of(ledger.expected.items()))
        keep_promises(ledger, [self._promised[one] for one in sorted(self._promised)], made)
        if made.touched:
            self._looking.stop()
            self._enter(made.touched)
            self._untried |= {member.view.id: member for member in made.touched}
        if self._looking.go_on():
            self._serve(made)
            # Who could start has started: where many wait, others can wait for the next pass.
            can_wait = self._looking.is_spent and len(self._waiters.standings) > FEW
            self._look_for_room(made, 0 if can_wait else searches or self._searches)
        self._end_pass(made)
        is_unfinished = not self._looking.is_done or not self._seeking.is_done
        return replace(made.decisions(ledger), unfinished=is_unfinished or self._holders.unfinished)

    def decide_all(self, *, explain: bool) -> Decisions:
        """Take a pass that looks at everybody, at those with bookings too, whatever has happened.

        Args:
            explain: Also say why everybody else waits.
        """
        self._looking.stop()
        self._divide()
        made, steps = Made(), reduce(or_, (search.step for search in self._steps), Steps.GRANT)
        decided = decide(self.ledger, steps, explain=explain, made=made)
        self._enter(made.touched)
        self._freed = 0
        self._untried.clear()
        self._seeking.finish()
        self._end_pass(made)
        # What this pass looked for in vain, only it knows.
        self._is_changed = True
        return decided

    def _divide(self) -> None:
        """Enter the shares as they are now."""
        ledger, before = self.ledger, self._shares
        if before is None:
            requests, k = ledger.requests(), ledger.rules.usage_weight
            self._shares = divide_tree(ledger.tree, ledger.total, requests, self.usage, k=k)
            self._reserving.anew()
        elif self._leaves:
            requests = {ledger.names[leaf]: self._request(leaf) for leaf in self._leaves}
            self._shares = divide_again(before, requests)
        else:
            return
        for queue in ledger.set_shares(self._shares.shares):
            self._looking.stop()
            self._holders.share_changed(queue)
            self._reserving.share_changed(queue)
            self._leaves[queue] = None
            self._is_changed = True
        self._seeking.stir(self._leaves)
        self._leaves.clear()

    def _request(self, leaf: int) -> Amount:
        return self.ledger.request(self._asked[leaf].values())

    def _fitting(self) -> Iterator[int]:
        """See whom what is free could serve, each for itself, beside what is kept for others."""
        ledger, waiters, looking = self.ledger, self._waiters, self._looking
        yield from self._reserving.look()
        kept, new, is_other = self._reserving.kept, self._new(), self._reserving.is_other
        if self._freed or is_other or (kept.reservations and self._is_changed):
            freed = self._everywhere if kept.reservations or is_other else self._freed
            fitting = waiters.fitting(ledger, self._sieve, freed, new)
        else:
            late = waiters.timed() if self._reserving.has_moved else ()
            fitting = self._sieve.sift(ledger, {m.view.id: m for m in (*new, *late)}.values())[0]
        yield len(fitting)
        looking.fitting = fitting
        if kept.reservations:
            yield from looking.narrow(kept)

    def _new(self) -> list[Member]:
        return [m for m in self._untried.values() if m.needs and not m.promised]

    def _serve(self, made: Made) -> None:
        """Serve whoever can be, in the order of the line."""
        if not (fitting := self._looking.fitting):
            return
        ledger, kept = self.ledger, self._reserving.kept
        # What is kept is open to some and not to others, and to others still in the next pass.
        sieve = Sieve() if kept.reservations else self._sieve
        kept.reopen()
        granting = serve(ledger, Sifted(fitting, []), kept, sieve, self._known)
        kept.close()
        made.grants += granting.grants
        made.touched += granting.served
        self._enter(granting.served)

    def _look_for_room(self, made: Made, searches: int) -> None:
        holders, reserving, waiters = self._holders, self._reserving, self._waiters
        is_changed = self._is_changed or bool(made.touched) or reserving.is_other
        # Of few all are asked: what one finds may be of use to another who found nothing before.
        is_changed |= self._has_happened and len(waiters.standings) <= FEW
        if reserving.has_moved:
            is_changed |= self.ledger.rules.may_move
            self._seeking.stir({member.leaf: None for member in waiters.timed()})
        if is_changed:
            self._seeking.restart()
        # However many look in vain, and whatever happens meanwhile, somebody comes to the last one.
        most = self.ledger.rules.most_searches << min(self._in_vain, 16)
        holders.begin(most, anew=is_changed or reserving.has_moved)
        self._freed, self._is_changed, self._has_happened = 0, False, False
        self._untried.clear()
        reserving.kept.reopen()
        reserved = (each.holder for each in reserving.kept.reservations)
        due = {m.view.id: m for m in reserved if m is not None and reserving.kept.is_due(m)}
        chosen = self._seeking.choose(holders, waiters, searches)
        seekers = (due | {member.view.id: member for member in chosen}).values()
        before = len(made.touched)
        for search in searches_beside(reserving.kept, self._steps):
            if not holders.unfinished:
                make_room_for_each(holders, seekers, search, made)
        reserving.kept.close()
        self._enter(made.touched[before:])
        self._in_vain = self._in_vain + 1 if holders.unfinished else 0
        if holders.unfinished:
            self._seeking.stir([member.leaf for member in chosen])

    def _end_pass(self, made: Made) -> None:
        for pieces in made.given.values():
            for piece, _ in pieces:
                self._loosen(_bays(piece.spots))
        if made.moves:
            self._loosen_all()
        for member in made.touched:
            member.turn = Turn.NONE
            self._untried[member.view.id] = member
            self._leaves[member.leaf] = None
            self._is_changed = True
            if _starts_or_stops(member):
                started_s = self.ledger.now_s if member.spots else None
                member.view = replace(member.view, started_s=started_s)
                # The youngest is asked first: the order of its queue is another now.
                self._holders.changed(member)
                self._reserving.changed(member)
        self.ledger.settle()

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


def _bays(spots: Iterable[Spot]) -> int:
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


def _starts_or_stops(member: Member) -> bool:
    """Whether a claim's view is behind on whether it holds anything."""
    return bool(member.spots) != (member.view.started_s is not None)


def _offered(host: HostShape) -> tuple[object, ...]:
    """What of a host is there to be shared out."""
    counted = tuple(device.counts for device in host.devices)
    return host.takes_more, host.cpu, host.memory_bytes, counted
