"""A small pool on virtual time, served first come first served, for the laws of backfill.

Each pass asks `backfill` as a real one does. Claims end after what they really take, at their
limit at the latest; whoever overruns a loan goes when the claim it was lent from wants it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.pool.rules import Rules
from jupyter_gpupool.scheduling.amounts import NO_LIMIT
from jupyter_gpupool.scheduling.backfill import keep_for_blocked
from jupyter_gpupool.scheduling.kept import Kept
from jupyter_gpupool.scheduling.ledger import Ledger, Member
from jupyter_gpupool.scheduling.overrunning import end_overrun_for
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, link
from jupyter_gpupool.scheduling.shape import DeviceView, HeldWorker, HostShape

BLOCKED_S = 600.0


def a_host(name: str, devices: int, **terms) -> HostShape:
    return HostShape(
        HostId(name),
        tuple(DeviceView(DeviceUuid(f"{name}-{n}"), "A100", 40) for n in range(devices)),
        **terms,
    )


def a_queue(name: str, guarantee: int = NO_LIMIT) -> Queue:
    return Queue(name=name, guarantee=(guarantee,), limit=(NO_LIMIT,))


def a_claim(name: str, workers: int = 1, *, queue: str = "q", **terms) -> ClaimView:
    terms.setdefault("minimum", workers)
    return ClaimView(id=ClaimId(name), owner=UserName("ann"), queue=queue, maximum=workers, **terms)


def on(*devices: str) -> tuple[HeldWorker, ...]:
    """Workers of one device each, on the hosts after which their devices are named."""
    return tuple(HeldWorker(HostId(d.partition("-")[0]), (DeviceUuid(d),)) for d in devices)


def a_view(
    hosts: Iterable[HostShape], claims: Iterable[ClaimView], *, now_s: float = 0.0, queues=("q",)
) -> PoolView:
    """A pool whose queues are guaranteed all there is, unless they are given as queues."""
    given = [queue if isinstance(queue, Queue) else a_queue(queue) for queue in queues]
    return PoolView(
        now_s=now_s,
        tree=link(("devices",), given),
        hosts=tuple(hosts),
        claims=tuple(claims),
        rules=Rules(blocked_for_s=BLOCKED_S),
    )


def books(view: PoolView) -> tuple[Ledger, list[Member]]:
    """The books of a view, with all shares 0, and who waits in them, oldest first."""
    ledger = Ledger(view)
    waiting = [member for member in ledger.members.values() if member.needs]
    return ledger, sorted(waiting, key=lambda m: (m.view.since_s, m.view.id))


@dataclass
class World:
    """Claims by what they really take, and what becomes of them.

    Attributes:
        started: When each claim started first.
        promised: When each claim could start at the latest, once it was first among the blocked.
    """

    hosts: tuple[HostShape, ...]
    takes_s: dict[str, float]
    claims: dict[str, ClaimView]
    blocked_s: float = BLOCKED_S
    started: dict[str, float] = field(default_factory=dict)
    promised: dict[str, float] = field(default_factory=dict)

    def run(self) -> "World":
        """Play until nobody waits."""
        now_s = 0.0
        arrivals = [claim.since_s for claim in self.claims.values()]
        moments = {0.0, *arrivals, *(since_s + self.blocked_s for since_s in arrivals)}
        while len(self.started) < len(self.takes_s):
            self._end(now_s)
            self._pass(now_s)
            later = [m for m in (*moments, *self._ends(), *self._loans()) if m > now_s]
            now_s = min(later)
        return self

    def _ends(self) -> list[float]:
        return [
            c.started_s + min(self.takes_s[name], c.time_limit_s or float("inf"))
            for name, c in self.claims.items()
            if c.held
        ]

    def _loans(self) -> list[float]:
        return [c.lent_until_s for c in self.claims.values() if c.lent_until_s is not None]

    def _end(self, now_s: float) -> None:
        for name, claim in list(self.claims.items()):
            limit_s = min(self.takes_s[name], claim.time_limit_s or float("inf"))
            if claim.held and claim.started_s + limit_s <= now_s:
                del self.claims[name]

    def _pass(self, now_s: float) -> None:
        here = [claim for claim in self.claims.values() if claim.since_s <= now_s]
        view = a_view(self.hosts, here, now_s=now_s)
        ledger, waiting = books(replace(view, rules=Rules(blocked_for_s=self.blocked_s)))
        kept = keep_for_blocked(ledger, waiting)
        # Later reservations may change as the first one finds something better.
        for reservation in kept.reservations[:1]:
            self.promised.setdefault(reservation.holder.view.id, reservation.gap.start_s)
        # As in a pass: what is free first, and only then room is made.
        for look in (self._free, self._overrun):
            for member in waiting:
                if member.needs and (spots := look(ledger, kept, member)):
                    ledger.grant(member, spots)
                    self._hold(ledger, member, now_s, kept.lent.get(member.view.id))

    def _free(self, ledger: Ledger, kept: Kept, member: Member):
        return kept.place(member, member.needs, is_too_big=False)

    def _overrun(self, ledger: Ledger, kept: Kept, member: Member):
        room = kept.room(member, lambda: end_overrun_for(kept, member))
        if room is None:
            return ()
        for piece in room.taken:
            ledger.take(piece.member, piece.spots)
            name = piece.member.view.id
            # Hibernated for good: it takes no part any more.
            self.claims.pop(name)
        return room.spots

    def _hold(self, ledger: Ledger, member: Member, now_s: float, lent_s: float | None) -> None:
        name = member.view.id
        self.started.setdefault(name, now_s)
        self.claims[name] = replace(
            member.view, held=ledger.named(member.spots), started_s=now_s, lent_until_s=lent_s
        )
