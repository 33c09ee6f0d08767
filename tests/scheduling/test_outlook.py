"""Gaps: the first moment at which a gang fits, by counting what has ended until then."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.pools import LAW, a_claim, a_host, a_pool, a_queue, pools

from jupyter_gpupool.pool.ids import DeviceUuid, HostId
from jupyter_gpupool.scheduling.amounts import WHOLE_DEVICE
from jupyter_gpupool.scheduling.bits import bits
from jupyter_gpupool.scheduling.endings import Endings
from jupyter_gpupool.scheduling.ledger import Ledger
from jupyter_gpupool.scheduling.outlook import Outlook
from jupyter_gpupool.scheduling.remaining import will_have_ended_s
from jupyter_gpupool.scheduling.shape import HeldWorker, WorkerShape

_LIMITS = (None, None, 300.0, 700.0, 1500.0)
_EXPECTED = (None, None, 200.0, 900.0, 4000.0)


@st.composite
def _timed(draw):
    """A pool whose claims have limits, expected times and memory, or some of it."""
    view, choose = draw(pools()), draw(st.randoms(use_true_random=False))
    hosts = tuple(h._replace(memory_bytes=choose.choice((0, 30, 100))) for h in view.hosts)
    claims = tuple(
        replace(
            claim,
            time_limit_s=choose.choice(_LIMITS),
            expected_s=choose.choice(_EXPECTED),
            lent_until_s=choose.choice((None, 1100.0)) if claim.held else None,
            worker=claim.worker._replace(memory_bytes=choose.choice((0, 0, 10))),
        )
        for claim in view.claims
    )
    return replace(view, hosts=hosts, claims=claims)


def _ends_s(ledger, member):
    """When a claim gives back what it holds, one by one as the formulae say it."""
    ends_s = will_have_ended_s(member.view, ledger.now_s)
    lent_s = member.view.lent_until_s
    return ends_s if lent_s is None else min(ends_s, max(ledger.now_s, lent_s))


def _rooms(ledger, shape, ended):
    """How many workers fit once these are gone, bay by bay."""
    inventory, left = ledger.inventory, _left(ledger, ended)
    gone = [(m, inventory.bays[s.bay].host) for m in ended for s in (*m.spots, *m.promised)]
    fit = 0
    for number, bay in enumerate(inventory.bays):
        if not inventory.accepting(shape) >> number & 1:
            continue
        cpu = inventory.cpu[bay.host] + sum(m.view.worker.cpu for m, h in gone if h == bay.host)
        memory = inventory.memory[bay.host]
        memory += sum(m.view.worker.memory_bytes for m, h in gone if h == bay.host)
        whole = sum(
            left[number, at] >= WHOLE_DEVICE and device.may_be_leased
            for at, device in enumerate(bay.devices)
        )
        rooms = [whole * (WHOLE_DEVICE // shape.share) if shape.share else whole // shape.devices]
        rooms += [cpu // shape.cpu] if shape.cpu else []
        rooms += [memory // shape.memory_bytes] if shape.memory_bytes else []
        fit += max(min(rooms), 0)
    return fit


def _left(ledger, ended):
    """What is free of each device once these are gone, in thousandths."""
    left = {
        (number, at): bay.parts.get(at, WHOLE_DEVICE * (bay.whole >> at & 1))
        for number, bay in enumerate(ledger.inventory.bays)
        for at in range(len(bay.devices))
    }
    for spot in (spot for member in ended for spot in (*member.spots, *member.promised)):
        for at in bits(spot.devices):
            left[spot.bay, at] += spot.share or WHOLE_DEVICE
    return left


def _first_moment(ledger, member):
    """When a claim fits for the first time, looking at each end in turn."""
    holders = [m for m in ledger.members.values() if m.spots or m.promised]
    for now_s in sorted({ledger.now_s, *(_ends_s(ledger, m) for m in holders)}):
        ended = [m for m in holders if _ends_s(ledger, m) <= now_s]
        for gone in ([], ended) if now_s == ledger.now_s else (ended,):
            if _rooms(ledger, member.view.worker, gone) >= member.needs:
                return now_s
    return None


@LAW
@given(view=_timed())
def test_a_gap_starts_as_soon_as_enough_has_ended(view):
    """No sooner and no later than counting one end after the other says."""
    ledger = Ledger(view)
    for member in ledger.members.values():
        if member.needs:
            gap = Outlook(ledger).gap_for(member, member.needs)
            assert (gap and gap.start_s) == _first_moment(ledger, member)


@LAW
@given(view=_timed())
def test_a_gap_has_a_place_for_each_worker(view):
    """As many spots as workers, no device twice unless it is shared, all where its shape may go."""
    ledger = Ledger(view)
    for member in ledger.members.values():
        gap = Outlook(ledger).gap_for(member, member.needs) if member.needs else None
        if gap is None:
            continue
        shape, used = member.view.worker, Counter()
        assert len(gap.spots) == member.needs
        for spot in gap.spots:
            assert ledger.inventory.accepting(shape) >> spot.bay & 1
            assert spot.devices.bit_count() == (shape.devices or bool(shape.share))
            used.update({(spot.bay, at): spot.share or WHOLE_DEVICE for at in bits(spot.devices)})
        assert all(amount <= WHOLE_DEVICE for amount in used.values())


@LAW
@given(view=_timed())
def test_columns_that_are_kept_say_what_new_ones_say(view):
    """Whoever comes, goes or comes back: when devices are free is the same as looked at anew."""
    ledger = Ledger(view)
    kept = Endings(ledger)
    for member in list(ledger.members.values()):
        ledger.take(member, list(member.spots))
        kept.note(member)
    for claim in reversed(view.claims):
        ledger.remove(ledger.members[claim.id])
        kept.forget(claim.id)
        kept.note(ledger.add(claim))
    found = [e.of_devices(e.of_claims(ledger.now_s)).tolist() for e in (kept, Endings(ledger))]
    assert found[0] == found[1]


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_what_ends_together_is_free_together(names):
    """Two who end at once leave the better of their hosts, whatever they are called."""
    hosts = [a_host("h0", 2), a_host("h1", 2)]
    held = [
        a_claim(
            name,
            "q",
            2,
            time_limit_s=100.0,
            started_s=950.0,
            held=tuple(HeldWorker(HostId(host), (DeviceUuid(f"{host}-{n}"),)) for n in range(2)),
        )
        for name, host in zip(names, ("h0", "h1"), strict=True)
    ]
    waits = a_claim("w", "q", 2, worker=WorkerShape())
    ledger = Ledger(a_pool(hosts, [a_queue("q")], [*held, waits]))
    gap = Outlook(ledger).gap_for(ledger.members[waits.id], 2)
    assert (gap.start_s, {spot.bay for spot in gap.spots}) == (1050.0, {0})
