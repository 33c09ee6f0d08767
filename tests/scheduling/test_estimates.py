"""Estimated starts: in the order of the pass, from what is known, and what would start sooner."""

from dataclasses import replace

from gap_world import a_claim, a_host, a_queue, a_view, on
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpupool.scheduling import forecast
from jupyter_gpupool.scheduling.estimates import (
    Alternative,
    Estimate,
    estimate_claim,
    estimates,
    told,
)
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, WorkerShape


def full_host(*claims, expected_s=1000.0, **terms):
    """One host with two devices, both held since 0; it is 100 now."""
    runs = a_claim("runs", 2, held=on("h-0", "h-1"), started_s=0.0, expected_s=expected_s, **terms)
    return a_view([a_host("h", 2)], [runs, *claims], now_s=100.0)


def starts(view) -> dict[str, float | None]:
    return {name: estimate.start_p50_s for name, estimate in estimates(view).items()}


def test_start_is_when_devices_are_expected_back():
    """One starts as the other is thought to end, the next as that one is."""
    view = full_host(
        a_claim("a", 2, since_s=1.0, expected_s=500.0), a_claim("b", 2, since_s=2.0, expected_s=1.0)
    )
    assert starts(view) == {"a": 1000.0, "b": 1500.0}


def test_time_limit_ends_sooner_than_expected():
    """What binds counts more than what is thought."""
    assert starts(full_host(a_claim("a", since_s=1.0), time_limit_s=300.0)) == {"a": 300.0}


def test_late_estimate_takes_what_nine_of_ten_take():
    """Half an hour as likely as not, an hour in nine of ten."""
    view = full_host(a_claim("a", since_s=1.0), expected_s=1800.0, expected_at_most_s=3600.0)
    assert estimates(view)["a"] == Estimate(start_p50_s=1800.0, start_p90_s=3600.0)


def test_overrun_is_taken_to_go_on_as_long_again():
    """It has run for 100 s and was thought to take 10."""
    assert starts(full_host(a_claim("a", since_s=1.0), expected_s=10.0)) == {"a": 200.0}


def test_what_never_fits_has_no_start():
    """Three devices of a host of two."""
    estimate = estimates(full_host(a_claim("a", worker=WorkerShape(devices=3))))["a"]
    assert (estimate.start_p50_s, estimate.start_p90_s) == (None, None)


def test_limit_of_queue_holds_in_the_future_too():
    """Its queue may have one device: the second claim waits for the first."""
    queue = replace(a_queue("q"), limit=(1000,))
    claims = [a_claim("a", since_s=0.0, expected_s=50.0), a_claim("b", since_s=1.0)]
    view = a_view([a_host("h", 2)], claims, queues=(queue,))
    assert starts(view) == {"a": 0.0, "b": 50.0}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whoever_starts_now_is_granted_now(data):
    """An estimate of now is what a pass does now, and nobody else is granted anything."""
    claims = [
        a_claim(
            f"c{at}",
            data.draw(st.integers(1, 4)),
            since_s=float(at),
            worker=WorkerShape(devices=data.draw(st.integers(1, 3))),
        )
        for at in range(data.draw(st.integers(1, 8)))
    ]
    view = a_view([a_host("h", 4), a_host("i", 3)], claims, now_s=50.0)
    granted = {grant.claim_id for grant in plan(view).grants}
    assert {name for name, start_s in starts(view).items() if start_s == 50.0} == granted


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_gathering_ends_only_delays(data):
    """A large pool's starts are those of a small one, a few percent later at most each time."""
    claims = [
        a_claim(f"c{at}", 2, since_s=float(at), expected_s=float(data.draw(st.integers(1, 9999))))
        for at in range(6)
    ]
    view = a_view([a_host("h", 2)], claims)
    exact, before = starts(view), forecast.EXACT_CLAIMS
    forecast.EXACT_CLAIMS = 0
    try:
        gathered = starts(view)
    finally:
        forecast.EXACT_CLAIMS = before
    for at, claim in enumerate(claims):
        late_s = gathered[claim.id] - exact[claim.id]
        assert 0 <= late_s <= at * (forecast.FIRST_STEP_S + 0.06 * (exact[claim.id] + 200) * 2)


def test_estimate_for_a_claim_not_made_yet():
    """Four at about a time; two now; and all four now on the other model."""
    a100 = tuple(DeviceView(f"a-{n}", "A100", 40) for n in range(4))
    l40s = tuple(DeviceView(f"l-{n}", "L40S", 48) for n in range(4))
    hosts = [HostShape("a", a100), HostShape("l", l40s)]
    runs = a_claim("runs", 2, held=on("a-0", "a-1"), started_s=0.0, expected_s=900.0)
    view = a_view(hosts, [runs], now_s=100.0)
    asked = a_claim("new", 4, worker=WorkerShape(model="a100"), since_s=100.0)
    estimate = estimate_claim(view, asked)
    assert estimate.start_p50_s == 900.0
    assert estimate.alternatives == (Alternative(workers=2), Alternative(workers=4, model="L40S"))
    line = told(estimate, 4, 100.0, lambda moment_s: f"{moment_s:.0f} s")
    assert line == "2 now, 4 at about 900 s; now if you take L40S"


def test_alternatives_leave_others_their_turn():
    """The free device is for whoever waits longer, not for a smaller claim of the newcomer."""
    first = a_claim("first", since_s=1.0, expected_s=10.0)
    view = a_view([a_host("h", 1)], [first], now_s=100.0)
    estimate = estimate_claim(view, a_claim("new", 1, since_s=100.0))
    assert estimate == Estimate(start_p50_s=110.0, start_p90_s=120.0)


def test_what_starts_now_needs_no_alternative():
    """It says so and nothing else."""
    view = a_view([a_host("h", 2)], [])
    estimate = estimate_claim(view, a_claim("new", 2))
    assert told(estimate, 2, 0.0, str) == "now"
