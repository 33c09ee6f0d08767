"""What queues bring in, keep to themselves, lend and borrow, all the way up the tree.

The books on which `ending_loans` looks for whose borrowing ends. What a queue brings in is open to
all below its parent, but for the part its lending limit keeps; what it uses beyond the kept part is
used from its parent. Source: Kueue KEP-79, hierarchical cohorts.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

from .amounts import Amount, above, add, minimum, subtract
from .dominance import NOTHING_BORROWED, DominantShare, dominant_share


class Account(NamedTuple):
    """What one queue brings in, and its terms.

    Attributes:
        own: Its guarantee, without what queues below it bring in.
        weight: Its part of what is lent, among its siblings; 0 gives back first.
        lends: How much of what it and those below it bring in others may use.
        borrows: How much it may use beyond that.
    """

    name: str
    parent: str | None
    own: Amount
    weight: float
    lends: Amount
    borrows: Amount


class LendingBooks:
    """Who uses how much of whose. Changed by `use` and `free`, its inverse.

    Attributes:
        children: By queue, those below it, in name order.
        brought: By queue, what it and those below it bring in for all of them.
        kept: The part of it that its parent never sees.
        used: What it and those below it use of it, or borrow.
    """

    def __init__(
        self, accounts: Iterable[Account], resources: Sequence[tuple[str, tuple[int, ...]]]
    ) -> None:
        """Open the books with nothing used.

        Args:
            accounts: All queues; every parent is among them.
            resources: What competes for dominance; see `dominance.dominant_share`.
        """
        self.accounts = {account.name: account for account in sorted(accounts)}
        self.resources = resources
        self.children: dict[str, list[str]] = {name: [] for name in self.accounts}
        for name, account in self.accounts.items():
            if account.parent is not None:
                self.children[account.parent].append(name)
        self.brought: dict[str, Amount] = {}
        self.kept: dict[str, Amount] = {}
        for name, account in self.accounts.items():
            if account.parent is None:
                self._bring_in(name)
        self.used = {name: subtract(own, own) for name, own in self.brought.items()}

    def _bring_in(self, name: str) -> Amount:
        """Add up what a queue brings in; returns what its parent sees of it."""
        brought = self.accounts[name].own
        for child in self.children[name]:
            brought = add(brought, self._bring_in(child))
        self.brought[name] = brought
        self.kept[name] = above(brought, self.accounts[name].lends)
        return subtract(brought, self.kept[name])

    def copied(self) -> "LendingBooks":
        """The same books, to be changed on their own."""
        books = copy(self)
        books.used = dict(self.used)
        return books

    def path(self, name: str) -> tuple[str, ...]:
        """List a queue and all above it, up to the top."""
        path = [name]
        while (parent := self.accounts[path[-1]].parent) is not None:
            path.append(parent)
        return tuple(path)

    def use(self, name: str, amount: Amount) -> None:
        """Let a queue use more, of its own first."""
        for queue in self.path(name):
            unused = above(self.kept[queue], self.used[queue])
            self.used[queue] = add(self.used[queue], amount)
            amount = above(amount, unused)

    def free(self, name: str, amount: Amount) -> None:
        """Let a queue use less, of others' first."""
        for queue in self.path(name):
            seen_above = above(self.used[queue], self.kept[queue])
            self.used[queue] = subtract(self.used[queue], amount)
            amount = minimum(amount, seen_above)

    def available(self, name: str) -> Amount:
        """What a queue could use more now; negative where the tree is overcommitted."""
        top, *below = reversed(self.path(name))
        amount = subtract(self.brought[top], self.used[top])
        for queue in below:
            kept, used = self.kept[queue], self.used[queue]
            shown = subtract(subtract(self.brought[queue], kept), above(used, kept))
            most = add(shown, self.accounts[queue].borrows)
            amount = add(above(kept, used), minimum(most, amount))
        return amount

    def potential(self, name: str) -> Amount:
        """What a queue could use if nobody used anything."""
        top, *below = reversed(self.path(name))
        amount = self.brought[top]
        for queue in below:
            most = add(self.brought[queue], self.accounts[queue].borrows)
            amount = minimum(most, add(self.kept[queue], amount))
        return amount

    def borrowed(self, name: str) -> Amount:
        """What a queue and those below it use beyond what they bring in."""
        return above(self.used[name], self.brought[name])

    def share(self, name: str) -> DominantShare:
        """How far a queue lives on what others lend; the one at the top borrows from nobody."""
        account = self.accounts[name]
        if account.parent is None:
            return NOTHING_BORROWED
        return dominant_share(
            held=self.used[name],
            guarantee=self.brought[name],
            lendable=self.potential(account.parent),
            weight=account.weight,
            of=self.resources,
        )
