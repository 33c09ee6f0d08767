"""What least attained service never does, in pools of any kind."""

from collections import Counter
from dataclasses import replace

from applied import applied
from hypothesis import given, settings
from hypothesis import strategies as st
from service_pool import NOW_S, RULES, a_claim, a_host, a_tree, a_view

from jupyter_gpupool.scheduling.ledger import Ledger
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.served import level_of
from jupyter_gpupool.scheduling.spots import place

QUEUES = st.sampled_from(["speech", "text", "vision"])
PAST = st.sampled_from([0.0, 50.0, 500.0, 5_000.0])


@st.composite
def pools(draw, *, elastic=True):
    """Up to three hosts, up to ten claims that hold devices or wait, and some guarantees."""
    hosts = [a_host(f"h{n}", draw(st.integers(1, 4))) for n in range(draw(st.integers(1, 3)))]
    free = {host.id: [device.uuid for device in host.devices] for host in hosts}
    claims = [_claim(draw, f"c{n}", free, elastic=elastic) for n in range(draw(st.integers(1, 10)))]
    guarantees = {name: draw(st.integers(0, 3)) for name in ("text", "vision")}
    limit = draw(st.sampled_from([None, None, 4]))
    return a_view(*claims, hosts=hosts, tree=a_tree(limit, **guarantees))


def _claim(draw, name, free, *, elastic):
    each, workers = draw(st.sampled_from([1, 1, 2, 4])), draw(st.sampled_from([1, 1, 2]))
    on = []
    if draw(st.booleans()):
        for _ in range(workers):
            fitting = [uuids for uuids in free.values() if len(uuids) >= each]
            if fitting:
                on.append(" ".join(fitting[0].pop(0) for _ in range(each)))
    if on and len(on) < workers:
        workers = len(on)
    return a_claim(
        name,
        queue=draw(QUEUES),
        workers=workers,
        most=workers + draw(st.integers(0, 2)) if elastic else workers,
        each=each,
        on=on,
        attained_s=draw(PAST),
        since_s=float(draw(st.integers(0, 5))),
        can_hibernate=draw(st.sampled_from([True, True, True, False])),
        started_s=NOW_S - draw(st.sampled_from([10.0, 500.0])) if on else None,
    )


@settings(max_examples=120, deadline=None)
@given(pools())
def test_no_device_is_held_twice(view):
    """Whatever is given was free, or was given back by somebody."""
    after = applied(view, plan(view))
    held = Counter(uuid for claim in after.claims for w in claim.held for uuid in w.devices)
    assert all(count == 1 for count in held.values())
    assert set(held) <= {device.uuid for host in view.hosts for device in host.devices}


@settings(max_examples=120, deadline=None)
@given(pools())
def test_who_gets_devices_gets_its_minimum(view):
    """Gangs start whole, and nobody goes on with less than the minimum."""
    after = applied(view, plan(view))
    assert all(not claim.held or len(claim.held) >= claim.minimum for claim in after.claims)


@settings(max_examples=120, deadline=None)
@given(pools())
def test_only_higher_levels_or_debtors_give(view):
    """Who gives has attained more, or its queue held more than it is guaranteed."""
    claims = {claim.id: claim for claim in view.claims}
    held = Counter()
    for claim in view.claims:
        held[claim.queue] += 1000 * len(claim.held) * claim.worker.devices
    for part in (*(decided := plan(view)).takes, *decided.moves):
        giver, asks = claims[part.claim_id], claims[part.claimant]
        has_more = held[giver.queue] > view.tree.queues[giver.queue].guarantee[0]
        assert _level(giver) > _level(asks) or (has_more and giver.queue != asks.queue)
        assert giver.can_hibernate


def _level(claim):
    return level_of(claim.attained_s, RULES.levels)


@settings(max_examples=120, deadline=None)
@given(pools())
def test_nothing_lies_idle_while_wanted(view):
    """After a pass no claim that waits fits on what is free, limits aside."""
    after = applied(view, plan(view))
    ledger = Ledger(after)
    for member in ledger.members.values():
        if member.needs and ledger.within_limits(member, member.needs):
            assert not place(ledger, member, member.needs, member.needs)


@settings(max_examples=120, deadline=None)
@given(pools())
def test_pass_over_its_own_result_decides_nothing(view):
    """Once is enough, and nobody takes back at once what was taken."""
    after = applied(view, plan(view), takes_s=0.0)
    assert plan(after).changes_nothing


@settings(max_examples=80, deadline=None)
@given(pools(), st.randoms(use_true_random=False))
def test_order_of_input_does_not_matter(view, order):
    """Claims and hosts are sets."""
    claims, hosts = list(view.claims), list(view.hosts)
    order.shuffle(claims)
    order.shuffle(hosts)
    assert plan(view) == plan(replace(view, claims=tuple(claims), hosts=tuple(hosts)))
