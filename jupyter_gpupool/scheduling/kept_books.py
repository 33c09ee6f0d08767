"""Books that live from pass to pass: a pass looks only at what has happened since the last one.

Kept by whoever says what happens (`books_between_passes`) and carries out what is decided: the
manager, for pools with many claims. Nothing here knows a clock. As long as no pass has more to look
for than it may, each decides what `rounds.plan` decides of a view of the same moment; one that has
more is `unfinished`, and the next goes on.

Why so little needs to be looked at: who found no room on what is free finds none until something is
given back (`fitting`). Only the shares of queues along the paths of changed claims, and beside them
where really more or less is left, are divided anew (`tree_shares.divide_again`).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import or_

from .amounts import Amount
from .books_between_passes import BooksBetweenPasses, bays_of
from .decisions import Decisions
from .fitting import Sieve, Sifted
from .granting import serve
from .ledger import Member, Turn
from .looking import Looking
from .overrunning import searches_beside
from .pool_view import PoolView
from .rounds import decide
from .seeking import FEW, Seeking
from .steps import SEARCHES, Made, Steps, keep_promises, make_room_for_each
from .tree_shares import divide_again, divide_tree
from .workload import workload_of


class KeptBooks(BooksBetweenPasses):
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
        super().__init__(view, Looking(self._fitting, effort))
        self._searches = searches or view.rules.most_searches
        self._steps = [search for search in SEARCHES if search.step in steps]
        self._seeking = Seeking(self.ledger)
        self._in_vain = 0

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

    def decide_all(self) -> Decisions:
        """Take a pass that looks at everybody, those with bookings too, whatever has happened."""
        self._looking.stop()
        self._divide()
        made, steps = Made(), reduce(or_, (search.step for search in self._steps), Steps.GRANT)
        decided = decide(self.ledger, steps, explain=False, made=made)
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
        for queue in ledger.set_shares(self._shares.changed):
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
                self._loosen(bays_of(piece.spots))
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


def _starts_or_stops(member: Member) -> bool:
    """Whether a claim's view is behind on whether it holds anything."""
    return bool(member.spots) != (member.view.started_s is not None)
