"""Whatever happens to a pool, in any order: after each event it comes to rest, and is sound."""

from dataclasses import replace

from carried_out import at_rest, begun, freed
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from laws.books import double_booked, has, held_by_queue, may_have, needs, room, waiting
from laws.pools import EXAMPLES, Kind, pools

from jupyter_gpupool.pool.rules import Sharing
from jupyter_gpupool.scheduling.decisions import Constraint
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import Obstacle

POOL = pools(Kind(holding=False))
PLACE = st.integers(0, 99)


def _one_of(things, place):
    return things[place % len(things)]


class PoolMachine(RuleBasedStateMachine):
    """A pool to which things happen; each is planned for until nothing changes."""

    @initialize(view=POOL)
    def open(self, view):
        """Begin with claims that wait, in a pool that is empty."""
        # Who shares a device today may not tomorrow, but stays: so the rule stays the same here.
        rules = replace(view.rules, sharing=Sharing.SAME_USER)
        self.view, self.away, self.number = replace(view, rules=rules), [], 0
        self._settle()

    @rule(other=POOL, place=PLACE)
    def arrive(self, other, place):
        """Somebody claims."""
        self.number += 1
        wanted = replace(
            _one_of(other.claims, place),
            id=f"n{self.number}",
            queue=_one_of(self.view.tree.leaves, place),
            since_s=self.view.now_s,
        )
        self._become(claims=(*self.view.claims, wanted))

    @precondition(lambda self: self.view.claims)
    @rule(place=PLACE)
    def end(self, place):
        """Somebody is done."""
        gone = _one_of(self.view.claims, place)
        self._become(claims=tuple(claim for claim in self.view.claims if claim is not gone))

    @precondition(lambda self: self.view.claims)
    @rule(place=PLACE, least=st.integers(1, 3), more=st.integers(0, 3))
    def scale(self, place, least, more):
        """Somebody wants other bounds; what is held beyond them is given back at once."""
        one = _one_of(self.view.claims, place)
        held = one.held[: least + more]
        scaled = replace(one, minimum=least, maximum=least + more, held=held)
        self._become(claims=tuple(scaled if c is one else c for c in self.view.claims))

    @rule(other=POOL)
    def revise(self, other):
        """The admin applies another tree; claims go to queues of it."""
        claims = tuple(
            replace(claim, queue=_one_of(other.tree.leaves, number))
            for number, claim in enumerate(self.view.claims)
        )
        rules = replace(other.rules, sharing=Sharing.SAME_USER)
        self._become(tree=other.tree, rules=rules, claims=claims, usage=other.usage)

    @precondition(lambda self: self.view.hosts)
    @rule(place=PLACE)
    def lose_host(self, place):
        """A host dies, with what is held there."""
        gone = _one_of(self.view.hosts, place)
        self.away.append(gone)
        claims = tuple(
            replace(claim, held=tuple(w for w in claim.held if w.host_id != gone.id))
            for claim in self.view.claims
        )
        hosts = tuple(host for host in self.view.hosts if host is not gone)
        self._become(hosts=hosts, claims=claims)

    @precondition(lambda self: self.away)
    @rule()
    def regain_host(self):
        """A host is back, empty."""
        self._become(hosts=(*self.view.hosts, self.away.pop()))

    @precondition(lambda self: any(host.devices for host in self.view.hosts))
    @rule(place=PLACE)
    def quarantine(self, place):
        """A device is out of order; whoever holds it keeps it."""
        device = _one_of([d for host in self.view.hosts for d in host.devices], place)
        out = device._replace(may_be_leased=False, counts=False, obstacle=Obstacle.QUARANTINED)
        hosts = tuple(
            host._replace(devices=tuple(out if d is device else d for d in host.devices))
            for host in self.view.hosts
        )
        self._become(hosts=hosts)

    @rule(passed_s=st.sampled_from((1.0, 99.0, 1000.0)))
    def wait(self, passed_s):
        """Time passes, and minimum runtimes end."""
        self._become(now_s=self.view.now_s + passed_s)

    @rule()
    def plan_slowly(self):
        """A plan is carried out as devices are really freed."""
        decided = plan(self.view)
        self._become(claims=freed(begun(self.view, decided)).claims)

    @invariant()
    def is_sound(self):
        """Nothing is leased twice, and no waiting claim fits on what is free and not reserved."""
        assert not double_booked(self.view)
        told = {wait.claim_id: wait.constraint for wait in self.last.waits}
        for claim in waiting(self.view):
            lacks = room(self.view, claim) < needs(claim)
            is_reserved = told[claim.id] is Constraint.RESERVED
            assert lacks or is_reserved or not may_have(self.view, claim, needs(claim))

    @invariant()
    def gangs_are_whole(self):
        """Who lost no host holds its minimum or nothing."""
        for claim in self.view.claims:
            assert has(claim) == 0 or has(claim) >= claim.minimum or claim.id in self.broken

    @invariant()
    def limits_hold(self):
        """No queue holds more than its limit, unless it did when that was lowered."""
        held = held_by_queue(self.view)
        for name, queue in self.view.tree.queues.items():
            assert held[name] <= max(queue.limit[0], self.before[name])

    @invariant()
    def everybody_is_told(self):
        """At rest each who waits has one answer."""
        told = sorted(wait.claim_id for wait in self.last.waits)
        assert told == sorted(claim.id for claim in waiting(self.view))

    def _become(self, **terms):
        self.view = replace(self.view, **terms)
        self._settle()

    def _settle(self):
        self.broken = {claim.id for claim in self.view.claims if 0 < has(claim) < claim.minimum}
        self.before = held_by_queue(self.view)
        self.view, self.last = at_rest(self.view)


TestPool = PoolMachine.TestCase
TestPool.settings = settings(
    max_examples=max(5, EXAMPLES // 4), stateful_step_count=12, deadline=None
)
