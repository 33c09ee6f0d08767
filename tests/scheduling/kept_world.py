"""A small pool as its manager sees it, beside books that are kept: what happens is told to both."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.pool.rules import Rules
from jupyter_gpupool.scheduling.amounts import NO_LIMIT
from jupyter_gpupool.scheduling.decisions import Decisions, Grant
from jupyter_gpupool.scheduling.kept_books import KeptBooks
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, link, user_leaf, with_users
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import DeviceView, HeldWorker, HostShape, Obstacle

LEAVES = ("a/x", "a/y", "b/x", "b/y")


def a_tree(guarantee: int, limit: int) -> QueueTree:
    """Two departments of two teams; one team is limited."""
    whole = [_queue(name, None, guarantee * 2) for name in ("a", "b")]
    teams = [_queue(name, name[0], guarantee) for name in LEAVES]
    limited = replace(teams[0], limit=(limit,))
    return link(("devices",), [*whole, limited, *teams[1:]])


def _queue(name: str, parent: str | None, guarantee: int) -> Queue:
    return Queue(name=name, parent=parent, guarantee=(guarantee,), limit=(NO_LIMIT,))


def a_host(name: str, devices: int, model: str) -> HostShape:
    uuids = (DeviceUuid(f"{name}-{n}") for n in range(devices))
    return HostShape(HostId(name), tuple(DeviceView(uuid, model, 40) for uuid in uuids))


@dataclass
class World:
    """The view that a manager would make, and the kept books; `both` asks the two.

    Attributes:
        usage: Decayed device-seconds by queue, of users that claim nothing too.
        effort: How much a pass over the kept books looks at, at once.
        has_users: Each user of a team has a leaf while they claim anything.
    """

    tree: QueueTree
    hosts: dict[HostId, HostShape]
    rules: Rules
    usage: dict[str, float] = field(default_factory=dict)
    has_users: bool = False
    effort: int | None = None
    now_s: float = 0.0
    claims: dict[ClaimId, ClaimView] = field(default_factory=dict)
    books: KeptBooks = field(init=False)

    def __post_init__(self) -> None:
        self.books = KeptBooks(self.view(), effort=self.effort)

    def users(self) -> QueueTree:
        """The tree with a leaf for each user that claims."""
        claims = [c for c in self.claims.values() if c.queue not in self.tree.queues]
        return with_users(self.tree, [(c.queue.rpartition("/")[0], c.owner) for c in claims])

    def view(self) -> PoolView:
        tree = self.users()
        return PoolView(
            now_s=self.now_s,
            tree=tree,
            usage={name: used for name, used in self.usage.items() if name in tree.queues},
            hosts=tuple(self.hosts.values()),
            claims=tuple(self.claims.values()),
            rules=self.rules,
        )

    def arrive(self, *, user: str = "", **terms: object) -> None:
        """A claim of a team, or of one of its users where each of them has a leaf."""
        name = f"c{len(self.claims):02}-{self.now_s:g}"
        owner = UserName(user or "ann")
        claim = ClaimView(id=ClaimId(name), owner=owner, since_s=self.now_s, **terms)
        if self.has_users:
            claim = replace(claim, queue=user_leaf(claim.queue, owner))
        before = self.users()
        self.claims[claim.id] = claim
        self._join(before)
        self.books.arrive(claim)

    def end(self, which: int) -> None:
        if self.claims:
            gone, before = sorted(self.claims)[which % len(self.claims)], self.users()
            self.books.end(gone)
            del self.claims[gone]
            self._join(before)

    def _join(self, before: QueueTree) -> None:
        if self.users() != before:
            self.books.join(self.users(), self.usage)

    def amend(self, which: int, **terms: object) -> None:
        """Something else about a claim is other than before."""
        if self.claims:
            name = sorted(self.claims)[which % len(self.claims)]
            self._change(name, **terms)
            assert self.books.update(self.claims[name])

    def advance(self) -> None:
        self.now_s += 100.0
        self.books.advance(self.now_s)

    def both(self) -> tuple[Decisions, Decisions]:
        """What a full pass decides, and what the kept books do; the latter is carried out."""
        full, kept = plan(self.view()), self.books.decide()
        self._carry_out(kept)
        return replace(full, waits=()), kept

    def in_goes(self) -> tuple[Decisions, Decisions, int]:
        """The same where a look of the kept books takes several passes, and how many it took."""
        full, goes = plan(self.view()), 1
        kept = self.books.decide()
        # A promise that can be kept is kept by the first go, whatever the others come to.
        while kept.unfinished and all(self._was_promised(grant) for grant in kept.grants):
            if kept.takes or kept.moves or kept.promises:
                break
            later, goes = self.books.decide(), goes + 1
            kept = replace(later, grants=(*kept.grants, *later.grants))
        self._carry_out(kept)
        return replace(full, waits=()), kept, goes

    def _was_promised(self, grant: Grant) -> bool:
        return set(grant.workers) <= set(self.claims[grant.claim_id].promised)

    def settle(self, most: int = 400) -> None:
        """Take passes over the kept books until there is nothing left to do or to look for."""
        for _ in range(most):
            kept = self.books.decide()
            self._carry_out(kept)
            if kept.changes_nothing and not kept.unfinished:
                return
        raise AssertionError("the kept books do not come to rest")

    def _carry_out(self, decisions: Decisions) -> None:
        for take in decisions.takes:
            self._hold(take.claim_id, without=take.workers)
            self._mark(take.workers, Obstacle.FREEING)
        for grant in decisions.grants:
            self._hold(grant.claim_id, more=grant.workers)
            self._change(grant.claim_id, promised=())
        for promise in decisions.promises:
            before = self.claims[promise.claim_id].promised
            self._change(promise.claim_id, promised=(*before, *promise.workers))
        for move in decisions.moves:
            self._hold(move.claim_id, without=move.workers, more=move.to)

    def _hold(
        self, name: ClaimId, *, more: Iterable[HeldWorker] = (), without: Iterable[HeldWorker] = ()
    ) -> None:
        left = list(self.claims[name].held)
        for worker in without:
            left.remove(worker)
        held = (*left, *more)
        started_s = self.claims[name].started_s if held else None
        self._change(
            name, held=held, started_s=self.now_s if held and started_s is None else started_s
        )

    def _change(self, name: ClaimId, **terms: object) -> None:
        self.claims[name] = replace(self.claims[name], **terms)

    def _mark(self, workers: Iterable[HeldWorker], obstacle: Obstacle | None) -> None:
        busy = {uuid for worker in workers for uuid in worker.devices}
        for host in {worker.host_id: self.hosts[worker.host_id] for worker in workers}.values():
            self._see(host, busy, obstacle)

    def free_all(self) -> None:
        """Let whatever is being freed be free."""
        for host in list(self.hosts.values()):
            self._see(host, {device.uuid for device in host.devices}, None)

    def _see(self, host: HostShape, which: set[DeviceUuid], obstacle: Obstacle | None) -> None:
        devices = tuple(
            device._replace(may_be_leased=obstacle is None, obstacle=obstacle)
            if device.uuid in which
            else device
            for device in host.devices
        )
        self.hosts[host.id] = host._replace(devices=devices)
        assert self.books.see(self.hosts[host.id])
