"""The books of one pass: who holds what, queue by queue, and every change with its way back.

Made from a `PoolView`; changed by the steps of the pass, which try something, look, and roll back.
Queues are numbers here, for a pass asks for them a hundred thousand times.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.rules import Rules, Sharing

from .amounts import BASE_KINDS, NO_LIMIT, Amount, Kinds
from .inventory import Inventory, Spot
from .members import Member, Turn, amount_of
from .numbering import numbered
from .pool_view import ClaimView, PoolView
from .queues import QueueTree
from .shape import HeldWorker, WorkerShape

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId

__all__ = ["Ledger", "Member", "Turn", "amount_of"]


class _Shape:
    """What one worker of a shape counts for, and the numbers of those alike, by sharer."""

    __slots__ = ("alike", "counts", "each")

    def __init__(self, each: Amount) -> None:
        self.each = each
        self.counts = tuple((kind, amount) for kind, amount in enumerate(each) if amount)
        self.alike: dict[str, int] = {}


class Ledger:
    """Who holds what. `held` and `firm` are by queue number, then by kind.

    Attributes:
        held: What the claims of a queue and of those below it hold.
        firm: The part of it that firm claims hold.
        share: What each queue's fair share is.
        allowed: What it may hold before others may take it back: its share, or its guarantee.
        full: The same, or all there is where it is not limited: what counts as full.
        ranks: By queue, what orders it before anything it holds, and after: see `queue_order`.
        team: The nearest queue of each one's path that is no user's own leaf.
        protects: Whether any queue protects young claims at all.
        total: All there is to share out.
        counted: The kinds of which there is anything.
        expected: How many workers of which shape the claims hold or wait for at least.
    """

    def __init__(self, view: PoolView) -> None:
        self.rules: Rules = view.rules
        self.now_s = view.now_s
        self.bookings = view.bookings
        self.tree: QueueTree = view.tree
        self.kinds: Kinds = view.tree.kinds
        found = self._numbering = numbered(view.tree)
        self.names, self.number, self.queues = found.names, found.number, found.queues
        self.parent, self.children, self.team = found.parent, found.children, found.team
        self._paths, self._limited = found.paths, found.limited
        queues = self.queues
        self.guarantee: list[Amount] = [queue.guarantee for queue in queues]
        self.limit: list[Amount] = [queue.limit for queue in queues]
        self.is_user = [queue.user is not None for queue in queues]
        self.protects = any(
            queue.own_min_runtime_s or queue.reclaim_min_runtime_s for queue in queues
        )
        self.held = [[0] * len(self.kinds) for _ in queues]
        self.firm = [[0] * len(self.kinds) for _ in queues]
        self.share: list[Amount] = [(0,) * len(self.kinds) for _ in queues]
        self.allowed: list[Amount] = list(self.share)
        self.full: list[Amount] = list(self.share)
        self.ranks = [(-queue.priority, queue.created, queue.name) for queue in queues]
        self.inventory = Inventory(view.hosts)
        self.total: Amount = ()
        self.counted: tuple[int, ...] = ()
        self.measure()
        self.members: dict[ClaimId, Member] = {}
        self.expected: Counter[WorkerShape] = Counter()
        self._shapes: dict[WorkerShape, _Shape] = {}
        self._kinds_of_claims = 0
        # What was granted to whom, or taken and from which places among its spots.
        self._done: list[tuple[Member, tuple[Spot, ...], list[int] | None]] = []
        for claim in sorted(view.claims, key=lambda claim: claim.id):
            self.add(claim)
        for member in self.members.values():
            if member.view.promised:
                self.enter_promise(member)

    def grow(self, tree: QueueTree) -> None:
        """Enter the queues that a tree has beyond those that are here; all others are the same."""
        nothing = (0,) * len(self.kinds)
        for name in [name for name in tree.top_down if name not in self.number]:
            queue = tree.queues[name]
            self._numbering.add(queue)
            self.guarantee.append(queue.guarantee)
            self.limit.append(queue.limit)
            self.is_user.append(queue.user is not None)
            self.held.append([0] * len(self.kinds))
            self.firm.append([0] * len(self.kinds))
            self.ranks.append((-queue.priority, queue.created, queue.name))
            for by_queue in (self.share, self.allowed, self.full):
                by_queue.append(nothing)
            self._allow(len(self.share) - 1, nothing)
        self.tree = tree

    def add(self, claim: ClaimView) -> Member:
        """Enter a claim with what it holds."""
        path, shape = self._paths[self.number[claim.queue]], claim.worker
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = _Shape(amount_of(shape, self.kinds))
        sharer = self._sharer(claim)
        alike = known.alike.get(sharer if shape.share else "")
        if alike is None:
            alike = known.alike[sharer if shape.share else ""] = self._kinds_of_claims
            self._kinds_of_claims += 1
        member = Member(claim, path[0], path, known.each, known.counts, sharer, alike)
        self.members[claim.id] = member
        self.expected[shape] += max(1, claim.minimum)
        if claim.held:
            self._enter(member, claim.held, member.spots)
        return member

    def enter_promise(self, member: Member) -> None:
        """Enter what a claim's view says it is promised: all, or none if a host of it is gone."""
        self._enter(member, member.view.promised, member.promised)
        if len(member.promised) < len(member.view.promised):
            for spot in member.promised:
                self.inventory.give(member.view.worker, spot)
            self._count(member, -len(member.promised))
            member.promised.clear()
            member.recount()

    def _enter(self, member: Member, workers: Iterable[HeldWorker], spots: list[Spot]) -> None:
        inventory, shape, sharer = self.inventory, member.view.worker, member.sharer
        for worker in workers:
            spot = inventory.spot(worker, shape)
            if spot is not None and inventory.hold(shape, spot, sharer):
                spots.append(spot)
        if spots:
            self._count(member, len(spots))
            member.recount()

    def may_fulfil(self, member: Member) -> bool:
        """Whether every device that a claim is promised is free, and all have given for it."""
        is_open = self.inventory.is_open
        return not member.view.awaits and all(map(is_open, member.promised))

    def fulfil(self, member: Member) -> None:
        """Let a claim hold what it was promised."""
        member.spots += member.promised
        member.promised.clear()
        member.recount()

    def _sharer(self, claim: ClaimView) -> str:
        match self.rules.sharing:
            case Sharing.SAME_USER:
                return claim.owner
            case Sharing.SAME_QUEUE:
                # A user's own leaf is one of the queue's, whose users may share.
                leaf = self.tree.queues[claim.queue]
                return claim.queue if leaf.user is None else leaf.parent or ""
            case Sharing.ANYONE:
                return ""

    def path_of(self, queue: int) -> tuple[int, ...]:
        """The numbers of a queue and of those above it."""
        return self._paths[queue]

    def limited(self, queue: int) -> tuple[int, ...]:
        """Of a queue and those above it the numbers of those that have a limit."""
        return self._limited[queue]

    # Changes and their way back

    def grant(self, member: Member, spots: Iterable[Spot]) -> None:
        """Let a claim hold these spots.

        Raises:
            ValueError: If one of them is not free.
        """
        granted = tuple(spots)
        for spot in granted:
            self.inventory.take(member.view.worker, spot, member.sharer)
        self._note(member, granted)

    def promise(self, member: Member, spots: Iterable[Spot]) -> None:
        """Let a claim wait for what it was just granted, until it is freed; there is no way back.

        Books that were rolled back beyond this point would be wrong: a pass ends with `settle`.
        """
        for spot in spots:
            member.spots.remove(spot)
            member.promised.append(spot)

    def put_back(self, member: Member, spots: Iterable[Spot]) -> None:
        """Let a claim hold again what was just taken from it."""
        again = tuple(spots)
        for spot in again:
            self.inventory.hold(member.view.worker, spot, member.sharer)
        self._note(member, again)

    def _note(self, member: Member, granted: tuple[Spot, ...]) -> None:
        member.spots += granted
        member.recount()
        self._count(member, len(granted))
        self._done.append((member, granted, None))

    def take(self, member: Member, spots: Iterable[Spot]) -> None:
        """Free these spots of a claim."""
        taken, places = tuple(spots), list[int]()
        for spot in taken:
            self.inventory.give(member.view.worker, spot)
            places.append(member.spots.index(spot))
            del member.spots[places[-1]]
        member.recount()
        self._count(member, -len(taken))
        self._done.append((member, taken, places))

    def remove(self, member: Member) -> None:
        """Strike a claim out, with all it holds; there is no way back."""
        self.take(member, member.spots)
        member.spots, member.promised = member.promised, []
        self.take(member, member.spots)
        del self.members[member.view.id]
        self.expected[member.view.worker] -= max(1, member.view.minimum)
        self.settle()

    def settle(self) -> None:
        """Forget the way back, in books that outlive a pass."""
        self._done.clear()

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self._done)

    def roll_back(self, mark: int) -> None:
        """Undo every change since a mark."""
        while len(self._done) > mark:
            member, spots, places = self._done.pop()
            if places is None:
                for spot in reversed(spots):
                    self.inventory.give(member.view.worker, spot)
                del member.spots[len(member.spots) - len(spots) :]
            else:
                # Where they were: books that live on must not show what was only tried.
                for spot, place in zip(reversed(spots), reversed(places), strict=True):
                    self.inventory.hold(member.view.worker, spot, member.sharer)
                    member.spots.insert(place, spot)
            member.recount()
            self._count(member, -len(spots) if places is None else len(spots))

    def _count(self, member: Member, workers: int) -> None:
        for kind, amount in member.counts:
            more, held = workers * amount, self.held
            for queue in member.path:
                held[queue][kind] += more
            if member.view.firm:
                for queue in member.path:
                    self.firm[queue][kind] += more

    # Questions

    def within_limits(self, member: Member, count: int) -> bool:
        """Whether so many more workers stay below the limit of its queue and of all above it."""
        return self.over_limit(member, count) is None

    def may_be_stopped(self, member: Member) -> bool:
        """Whether any limit or guarantee could ever stand against more workers of a claim."""
        return member.view.firm or bool(self._limited[member.leaf])

    def over_limit(self, member: Member, count: int) -> int | None:
        """The number of the queue whose limit so many more workers would exceed, if any."""
        for queue in self._limited[member.leaf]:
            held, limit = self.held[queue], self.limit[queue]
            for kind, amount in member.counts:
                if held[kind] + count * amount > limit[kind]:
                    return queue
        return None

    def over_guarantee(self, member: Member, count: int) -> int | None:
        """The queue whose guarantee so many more workers of a firm claim would exceed, if any.

        A user's own leaf has none: what its queue is guaranteed is for all its users.
        """
        if not member.view.firm:
            return None
        for queue in member.path:
            if self.is_user[queue]:
                continue
            firm, guarantee = self.firm[queue], self.guarantee[queue]
            for kind, amount in member.counts:
                if firm[kind] + count * amount > guarantee[kind]:
                    return queue
        return None

    def set_shares(self, shares: Mapping[str, Amount]) -> list[int]:
        """Enter the fair shares of these queues, and give the numbers of those that changed."""
        changed = []
        for name, share in shares.items():
            number = self.number[name]
            if share != self.share[number]:
                self.share[number] = share
                self._allow(number, share)
                changed.append(number)
        return changed

    def measure(self) -> None:
        """Count all that hosts have to share out, at first and whenever that may have changed."""
        self.total = capacity_of(self.inventory, self.kinds)
        self.counted = tuple(kind for kind, amount in enumerate(self.total) if amount)
        for number, share in enumerate(self.share):
            self._allow(number, share)

    def _allow(self, queue: int, share: Amount) -> None:
        for_sure = map(max, self.guarantee[queue], share)
        allowed = self.allowed[queue] = tuple(map(min, self.limit[queue], for_sure))
        all_of_it = zip(allowed, self.total, strict=True)
        self.full[queue] = tuple(all_ if may >= NO_LIMIT else may for may, all_ in all_of_it)

    def requests(self) -> dict[str, Amount]:
        """What the claims of each leaf hold and would take, all together."""
        asked: dict[int, list[Member]] = {}
        for member in self.members.values():
            asked.setdefault(member.leaf, []).append(member)
        return {self.names[leaf]: self.request(members) for leaf, members in asked.items()}

    def request(self, members: Iterable[Member]) -> Amount:
        """What the claims of one leaf hold and would take, all together."""
        wanted = [0] * len(self.kinds)
        for member in members:
            count = max(member.has, member.view.maximum)
            for kind, amount in member.counts:
                wanted[kind] += amount * count
        return tuple(wanted)

    def named(self, spots: Sequence[Spot]) -> tuple[HeldWorker, ...]:
        """Spots as hosts and devices."""
        return tuple(map(self.inventory.named, spots))


def capacity_of(inventory: Inventory, kinds: Kinds) -> Amount:
    """All that hosts which take more could lease, kind by kind."""
    totals = [0] * len(kinds)
    for host in inventory.hosts:
        if not host.takes_more:
            continue
        devices = [device for device in host.devices if device.counts]
        base = (len(devices) * 1000, host.cpu, host.memory_bytes)
        for kind, name in enumerate(kinds):
            if kind < len(BASE_KINDS):
                totals[kind] += base[kind]
            else:
                model = name.partition(":")[2]
                totals[kind] += 1000 * sum(model in device.model.lower() for device in devices)
    return tuple(totals)
