"""Whatever is planned: nothing is given twice, and nobody gets more than there is or is allowed."""

from applied import applied
from carried_out import begun, freed, passes
from hypothesis import given
from laws.books import by_id, double_booked, has, held_by_queue, used_on_host
from laws.pools import LAW, pools

from jupyter_gpupool.scheduling.rounds import plan


@LAW
@given(view=pools())
def test_no_device_is_leased_twice(view):
    """At no step of any plan is more of a device held than there is of it."""
    for before, decided in passes(view):
        after = begun(before, decided)
        assert not double_booked(after)
        assert not double_booked(freed(after))


@LAW
@given(view=pools())
def test_only_what_may_be_leased_is_granted(view):
    """Granted workers go to free devices in order, of the kind that was asked for."""
    decided, claims = plan(view), by_id(view)
    hosts = {host.id: host for host in view.hosts}
    for given_out in (*decided.grants, *decided.promises):
        shape = claims[given_out.claim_id].worker
        for worker in given_out.workers:
            host = hosts[worker.host_id]
            devices = [d for d in host.devices if d.uuid in worker.devices]
            assert host.takes_more
            assert shape.labels <= host.labels
            assert len(devices) == len(worker.devices) == (shape.devices or bool(shape.share))
            assert all(d.may_be_leased and shape.model in d.model.lower() for d in devices)
            assert len({d.model for d in devices}) <= 1


@LAW
@given(view=pools())
def test_no_host_gives_more_than_it_has(view):
    """Cores of a host are given out once; where more are held already, no more are added."""
    after = applied(view, plan(view))
    (used, _), (before, _) = used_on_host(after), used_on_host(view)
    for host in view.hosts:
        assert not host.cpu or used[host.id] <= max(host.cpu, before[host.id])


@LAW
@given(view=pools())
def test_no_plan_takes_a_queue_above_its_limit(view):
    """A queue that holds more than its limit already, for it was lowered, gets nothing more."""
    held = held_by_queue(view)
    for before, decided in passes(view):
        after = held_by_queue(applied(before, decided))
        for name, queue in view.tree.queues.items():
            assert after[name] <= max(queue.limit[0], held[name])


@LAW
@given(view=pools())
def test_firm_claims_stay_inside_their_guarantee(view):
    """Nobody starts for good what others may have a right to."""
    held = held_by_queue(view, firm=True)
    for before, decided in passes(view):
        after = held_by_queue(applied(before, decided), firm=True)
        for name, queue in view.tree.queues.items():
            assert after[name] <= max(queue.guarantee[0], held[name])


@LAW
@given(view=pools())
def test_gangs_run_whole_or_not_at_all(view):
    """A claim gets its minimum at once, and never keeps less than that when it gives."""
    for before, decided in passes(view):
        had, after = by_id(before), by_id(applied(before, decided))
        for name, claim in after.items():
            assert has(claim) in (0, has(had[name])) or has(claim) >= claim.minimum
            assert has(claim) <= max(claim.maximum, has(had[name]))


@LAW
@given(view=pools())
def test_nobody_gives_and_gets_in_one_pass(view):
    """Whoever is served keeps what it has, and nobody is asked twice over."""
    for _, decided in passes(view):
        got = [part.claim_id for part in (*decided.grants, *decided.promises)]
        gave = [take.claim_id for take in decided.takes]
        assert not set(got) & set(gave)
        assert len(set(gave)) == len(gave)
