"""Laws every plan keeps, whatever the pool and whoever asks."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpupool.scheduling.passes import plan
from jupyter_gpupool.scheduling.snapshot import Plan, Snapshot, Want

MODELS = ("NVIDIA A100", "NVIDIA H100")


@st.composite
def snapshots(draw, a_host, a_want):
    """A small pool of mixed hosts and a line of claims with mixed terms."""
    hosts = tuple(
        a_host(
            f"h{n}",
            devices,
            free=draw(st.integers(0, devices)),
            model=draw(st.sampled_from(MODELS)),
            memory_bytes=draw(st.sampled_from((40, 80))) * 2**30,
            durable=draw(st.booleans()),
            can_start=draw(st.sampled_from((True, True, False))),
        )
        for n, devices in enumerate(draw(st.lists(st.integers(0, 4), max_size=4)))
    )
    return Snapshot(hosts=hosts, wants=draw(wants(a_want)))


@st.composite
def wants(draw, a_want):
    """Claims that wait, or run and want more."""
    built = []
    for n in range(draw(st.integers(0, 6))):
        minimum = draw(st.integers(0, 5))
        built.append(
            a_want(
                f"c{n}",
                minimum,
                draw(st.integers(max(minimum, 1), 7)),
                after_s=draw(st.integers(0, 3)),
                model=draw(st.sampled_from(("", "a100", "h100"))),
                gpu_memory_bytes=draw(st.sampled_from((0, 60))) * 2**30,
                avoid=draw(st.frozensets(st.sampled_from(("h0", "h1")))),
            )
        )
    return tuple(built)


LAWS = settings(max_examples=100, deadline=None)


@LAWS
@given(data=st.data())
def test_no_device_is_granted_twice_and_only_free_ones_are(data, a_host, a_want):
    """Whatever is asked, a device has one claim, and none is taken from somebody."""
    snapshot = data.draw(snapshots(a_host, a_want))
    given_out = [placed for grant in plan(snapshot).grants for placed in grant.devices]
    free = {(host.id, device.uuid) for host in snapshot.hosts for device in host.free}
    assert len({placed.device for placed in given_out}) == len(given_out)
    assert {(placed.host_id, placed.device) for placed in given_out} <= free


@LAWS
@given(data=st.data())
def test_each_grant_is_within_its_bounds_and_terms(data, a_host, a_want):
    """A claim gets between its minimum and maximum, of devices that fit."""
    snapshot = data.draw(snapshots(a_host, a_want))
    asked = {want.claim_id: want for want in snapshot.wants}
    device = {d.uuid: (host.id, d) for host in snapshot.hosts for d in host.capacity}
    can_start = {host.id for host in snapshot.hosts if host.can_start}
    for grant in plan(snapshot).grants:
        want = _heeding(asked[grant.claim_id], snapshot)
        assert {placed.host_id for placed in grant.devices} <= can_start
        assert want.minimum <= len(grant.devices) <= want.maximum
        assert all(want.accepts(*device[placed.device]) for placed in grant.devices)


@LAWS
@given(data=st.data())
def test_the_order_of_the_input_does_not_matter(data, a_host, a_want):
    """The same pool and the same line give the same plan, however they are listed."""
    snapshot = data.draw(snapshots(a_host, a_want))
    shuffled = Snapshot(
        hosts=tuple(data.draw(st.permutations(snapshot.hosts))),
        wants=tuple(data.draw(st.permutations(snapshot.wants))),
    )
    assert plan(shuffled) == plan(snapshot)


@LAWS
@given(data=st.data())
def test_a_second_pass_decides_nothing_new(data, a_host, a_want, applied):
    """Once a plan is carried out, planning again grants nothing: the pool comes to rest."""
    snapshot = data.draw(snapshots(a_host, a_want))
    assert plan(applied(snapshot, plan(snapshot))).grants == ()


@LAWS
@given(data=st.data())
def test_everybody_has_an_answer(data, a_host, a_want):
    """Each want has a grant or a wait, and at most one of each; none is answered unasked."""
    snapshot = data.draw(snapshots(a_host, a_want))
    made = plan(snapshot)
    for answers in (made.grants, made.waits):
        assert len({answer.claim_id for answer in answers}) == len(answers)
    assert _answered(made) == {want.claim_id for want in snapshot.wants}


@LAWS
@given(data=st.data())
def test_a_place_is_never_ahead_of_ones_own_kind(data, a_host, a_want):
    """Among claims with the same terms that may start, places count up by one."""
    snapshot = data.draw(snapshots(a_host, a_want))
    want = {one.claim_id: _heeding(one, snapshot) for one in snapshot.wants}
    lines: dict[object, list[int]] = {}
    for wait in plan(snapshot).waits:
        if not wait.never:
            lines.setdefault(want[wait.claim_id].terms, []).append(wait.place)
    for terms, places in lines.items():
        fits = any(terms.accept(host.id, d) for host in snapshot.hosts for d in host.capacity)
        assert places == sorted(places)
        assert len(set(places)) == len(places) or not fits


@LAWS
@given(data=st.data())
def test_no_device_is_idle_that_the_first_in_line_could_have(data, a_host, a_want, applied):
    """The first claim that waits lacks devices: what is left would not complete it."""
    snapshot = data.draw(snapshots(a_host, a_want))
    made = plan(snapshot)
    after = applied(snapshot, made)
    waiting = {wait.claim_id: wait for wait in made.waits if not wait.never}
    for want in after.wants:
        if want.claim_id in waiting and waiting[want.claim_id].place == 1:
            heeding = _heeding(want, after)
            hosts = [host for host in after.hosts if host.can_start]
            left = sum(heeding.accepts(host.id, d) for host in hosts for d in host.free)
            assert left < max(want.minimum, 1)


def _heeding(want: Want, snapshot: Snapshot) -> Want:
    """The want with its hosts to avoid, unless nothing but those could serve it."""
    possible = sum(want.accepts(host.id, d) for host in snapshot.hosts for d in host.capacity)
    return want if possible >= max(1, want.minimum) else replace(want, avoid=frozenset())


def _answered(made: Plan) -> set[str]:
    return {answer.claim_id for answer in (*made.grants, *made.waits)}
