"""Whose borrowing ends so that a claim fits: the queue that lives most on others gives back first.

Down the tree, at each level the child with the greatest dominant share is asked, and nobody who
borrows nothing at some level below the common ancestor. A claim that stays within what its queue
brings in takes it back from whoever borrows; one that borrows itself may take only while that makes
the division fairer. Source: Kueue KEP-1714, fair sharing, rules S2-a and S2-b.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import NamedTuple, TypeAlias

from .amounts import Amount, fits
from .dominance import DominantShare
from .lending import LendingBooks
from .lending_turns import Holding, Turns, order_of_asking


class Whose(Enum):
    """Which claims a queue's own may push aside."""

    NOBODYS = auto()
    LOWER_PRIORITY = auto()
    LOWER_PRIORITY_OR_YOUNGER = auto()
    """The younger of two with equal priority, too."""
    ANYBODYS = auto()


class Ground(Enum):
    """Why a claim gives back what it holds."""

    PRIORITY = auto()
    """Another claim of its own queue ranks above it."""
    LENDER = auto()
    """The claimant's queue takes back what it brings in."""
    FAIRNESS = auto()
    """Afterwards, whoever borrows most borrows less."""


class Ended(NamedTuple):
    """A claim that gives back all it holds."""

    holding: Holding
    ground: Ground


class Shares(NamedTuple):
    """The two sides below the common ancestor.

    Attributes:
        mine: The claimant's, with what it asks for.
        before: The other's, as it is.
        after: The other's, without the claim in question.
    """

    mine: DominantShare
    before: DominantShare
    after: DominantShare


Rule: TypeAlias = Callable[[Shares], bool]
"""Whether one claim that borrows may be ended for another that borrows."""


def at_most_final_share(shares: Shares) -> bool:
    """Rule S2-a: the claimant ends no fuller than the other."""
    return shares.mine[:2] <= shares.after[:2]


def less_than_initial_share(shares: Shares) -> bool:
    """Rule S2-b: the claimant ends less full than the other began."""
    return shares.mine[:2] < shares.before[:2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the claimant's queue may do.

    Attributes:
        within: Whose claims of its own queue it may end.
        across: Whose claims of other queues it may end, where they borrow.
        rules: The first is tried on all; the second on those that are left, once per queue.
    """

    within: Whose = Whose.LOWER_PRIORITY
    across: Whose = Whose.ANYBODYS
    rules: Sequence[Rule] = (at_most_final_share, less_than_initial_share)


def loans_to_end(
    books: LendingBooks, holdings: Iterable[Holding], claimant: Holding, terms: Terms
) -> tuple[Ended, ...]:
    """Find which claims give back what they hold so that a claimant fits; none if that is unfair.

    Args:
        books: With everything used that `holdings` hold; stay as they are.
        holdings: What other claims hold.
        claimant: What asks.
        terms: Of its queue.
    """
    available = books.available(claimant.queue)
    contested = tuple(
        at
        for at, (asked, left) in enumerate(zip(claimant.amount, available, strict=True))
        if asked > max(0, left)
    )
    search = _Search(books.copied(), claimant, contested)
    asked_first = sorted(
        (h for h in holdings if search.may_end(h, terms)),
        key=partial(order_of_asking, claimant.queue),
    )
    if not (search.is_found(asked_first, terms.rules) and search.ended):
        return ()
    return search.without_the_needless()


@dataclass(slots=True)
class _Search:
    """Ends one claim after the other in the books, in which the claimant counts as served."""

    books: LendingBooks
    claimant: Holding
    contested: tuple[int, ...]
    ended: list[Ended] = field(default_factory=list)

    def may_end(self, holding: Holding, terms: Terms) -> bool:
        """Whether a claim holds what is contested, and the queue's terms allow ending it."""
        if not any(holding.amount[at] for at in self.contested):
            return False
        if holding.queue == self.claimant.queue:
            return _ranks_below(holding, self.claimant, terms.within)
        borrowed = self.books.borrowed(holding.queue)
        is_lent_to = any(borrowed[at] for at in self.contested)
        return is_lent_to and _ranks_below(holding, self.claimant, terms.across)

    def is_found(self, candidates: Sequence[Holding], rules: Sequence[Rule]) -> bool:
        """End claims until the claimant fits, by the first rule and then by the second."""
        self.books.use(self.claimant.queue, self.claimant.amount)
        passed_over: list[Holding] = []
        found = self._by_first_rule(candidates, rules[0], passed_over)
        if not found and len(rules) > 1:
            found = self._by_second_rule(passed_over, rules[1])
        self.books.free(self.claimant.queue, self.claimant.amount)
        return found

    def _by_first_rule(
        self, candidates: Sequence[Holding], rule: Rule, passed_over: list[Holding]
    ) -> bool:
        borrowed = self.books.borrowed(self.claimant.queue)
        takes_back = not any(borrowed[at] for at in self.contested)
        turns = Turns(self.books, self.claimant.queue, candidates)
        for queue in turns:
            own = queue == self.claimant.queue
            while turns.waiting[queue]:
                holding = turns.waiting[queue].pop(0)
                if own or takes_back or rule(self._shares(holding)):
                    ground = Ground.LENDER if takes_back else Ground.FAIRNESS
                    if self._fits_after(Ended(holding, Ground.PRIORITY if own else ground)):
                        return True
                    # What was just given back may have put another queue first.
                    break
                passed_over.append(holding)
        return False

    def _by_second_rule(self, candidates: Sequence[Holding], rule: Rule) -> bool:
        turns = Turns(self.books, self.claimant.queue, candidates)
        for queue in turns:
            holding = turns.waiting[queue][0]
            if rule(self._shares(holding)) and self._fits_after(Ended(holding, Ground.FAIRNESS)):
                return True
            # Once per queue: by this rule a second claim would only swap the two sides.
            turns.waiting[queue].clear()
        return False

    def _fits_after(self, one: Ended) -> bool:
        self.books.free(one.holding.queue, one.holding.amount)
        self.ended.append(one)
        self.books.free(self.claimant.queue, self.claimant.amount)
        fits_now = self._fits()
        self.books.use(self.claimant.queue, self.claimant.amount)
        return fits_now

    def _fits(self) -> bool:
        return fits(self.claimant.amount, self._at_least_nothing())

    def _at_least_nothing(self) -> Amount:
        # Of what it does not ask for, there may be less than nothing.
        return tuple(max(0, amount) for amount in self.books.available(self.claimant.queue))

    def _shares(self, holding: Holding) -> Shares:
        books = self.books
        mine, theirs = _sides(books.path(self.claimant.queue), books.path(holding.queue))
        before = books.share(theirs)
        books.free(holding.queue, holding.amount)
        after = books.share(theirs)
        books.use(holding.queue, holding.amount)
        return Shares(books.share(mine), before, after)

    def without_the_needless(self) -> tuple[Ended, ...]:
        """Leave out, the last asked first, whoever need not give back after all."""
        needed = [self.ended[-1]]
        for one in reversed(self.ended[:-1]):
            self.books.use(one.holding.queue, one.holding.amount)
            if not self._fits():
                self.books.free(one.holding.queue, one.holding.amount)
                needed.append(one)
        return tuple(reversed(needed))


def _ranks_below(holding: Holding, claimant: Holding, whose: Whose) -> bool:
    match whose:
        case Whose.NOBODYS:
            return False
        case Whose.LOWER_PRIORITY:
            return holding.priority < claimant.priority
        case Whose.LOWER_PRIORITY_OR_YOUNGER:
            theirs = (holding.priority, -holding.since_s)
            return theirs < (claimant.priority, -claimant.since_s)
        case Whose.ANYBODYS:
            return True


def _sides(mine: Sequence[str], theirs: Sequence[str]) -> tuple[str, str]:
    """The two children of the common ancestor on whose sides two queues stand."""
    pairs = zip(reversed(mine), reversed(theirs), strict=False)
    return next(pair for pair in pairs if pair[0] != pair[1])
