"""First come, first served: who may pass whom, and what those who wait are told."""

import pytest

from jupyter_gpupool.scheduling.passes import plan
from jupyter_gpupool.scheduling.snapshot import Snapshot, Wait


@pytest.fixture
def plan_of(a_host):
    """Plans wants on one host of A100s, of which the first `free` are free, and other hosts."""

    def make(*wants, devices=4, free=None, others=()):
        host = a_host("h", devices, free=free)
        return plan(Snapshot(hosts=(host, *others), wants=wants))

    return make


def test_who_asked_first_is_served_first(plan_of, a_want, granted):
    """The place in line is the time of asking, whatever order the wants come in."""
    late, early = a_want("late", 3, after_s=2), a_want("early", 3, after_s=1)
    assert granted(plan_of(late, early)) == {"early": ["h-0", "h-1", "h-2"]}


def test_equal_times_go_by_the_claims_id(plan_of, a_want, granted):
    """Ties are broken the same way each time."""
    assert list(granted(plan_of(a_want("b", 4), a_want("a", 4)))) == ["a"]


def test_nobody_passes_a_blocked_claim_to_devices_it_could_use(plan_of, a_want, granted):
    """A large gang does not starve behind a stream of small claims."""
    gang, small = a_want("gang", 4), a_want("small", 1, after_s=1)
    assert granted(plan_of(gang, small, free=2)) == {}


def test_who_needs_another_model_may_pass(plan_of, a_want, a_host, granted):
    """A device the blocked claim could never use is not kept idle for it."""
    gang = a_want("gang", 4, model="a100")
    other = a_want("other", 1, model="h100", after_s=1)
    h100 = a_host("x", 1, model="NVIDIA H100")
    assert granted(plan_of(gang, other, free=2, others=(h100,))) == {"other": ["x-0"]}


def test_who_takes_anything_gets_what_the_blocked_one_could_not_use(
    plan_of, a_want, a_host, granted
):
    """Of a mixed pool, only the devices the blocked claim could use are kept for it."""
    gang, any_device = a_want("gang", 4, model="a100"), a_want("any", 1, after_s=1)
    h100 = a_host("x", 1, model="NVIDIA H100")
    assert granted(plan_of(gang, any_device, free=2, others=(h100,))) == {"any": ["x-0"]}


def test_a_claim_that_can_never_start_blocks_nobody(plan_of, a_want, granted):
    """More than the pool has: the others do not wait for it."""
    assert granted(plan_of(a_want("huge", 5), a_want("small", 1, after_s=1))) == {"small": ["h-0"]}


def test_a_running_claim_grows_by_what_is_free(plan_of, a_want, granted):
    """It takes a part at once and keeps its place for the rest."""
    made = plan_of(a_want("runs", 0, 3), a_want("next", 1, after_s=1), free=2)
    assert granted(made) == {"runs": ["h-0", "h-1"]}
    assert [wait.claim_id for wait in made.waits] == ["runs", "next"]


def test_growth_that_joined_late_waits_behind(plan_of, a_want, granted):
    """A running claim that wants more is no better than one that waits since longer."""
    made = plan_of(a_want("waits", 2), a_want("runs", 0, 1, after_s=1), free=2)
    assert granted(made) == {"waits": ["h-0", "h-1"]}


@pytest.mark.parametrize(
    ("terms", "free", "reason"),
    [
        ({"minimum": 4}, 3, "Waiting for 1 of 4 devices."),
        ({"minimum": 1}, 0, "Waiting for 1 of 1 device."),
        ({"minimum": 2, "maximum": 4}, 0, "Waiting for 2 of 2 devices."),
        ({"minimum": 4, "model": "a100"}, 0, "Waiting for 4 of 4 a100 devices."),
        (
            {"minimum": 2, "gpu_memory_bytes": 40 * 2**30},
            1,
            "Waiting for 1 of 2 devices with 40 GiB.",
        ),
        ({"minimum": 0, "maximum": 3}, 1, "Waiting for 2 of 3 devices."),
    ],
    ids=str,
)
def test_the_first_in_line_reads_what_it_lacks(terms, free, reason, plan_of, a_want):
    """The sentence counts what is missing, in the claim's own terms."""
    assert plan_of(a_want("c", **terms), free=free).waits == (
        Wait(claim_id="c", place=1, reason=reason),
    )


def test_those_behind_read_how_many_are_ahead(plan_of, a_want):
    """Places count up in the order of asking."""
    wants = [a_want(name, 2, after_s=n) for n, name in enumerate("abc")]
    made = plan_of(*wants, free=1)
    assert [(wait.place, wait.reason) for wait in made.waits] == [
        (1, "Waiting for 1 of 2 devices."),
        (2, "1 claim ahead; waiting for 2 of 2 devices."),
        (3, "2 claims ahead; waiting for 2 of 2 devices."),
    ]


def test_only_rivals_are_counted_ahead(plan_of, a_want, a_host):
    """A claim that waits for another model is not in the way, so it is not counted."""
    gang, other = a_want("gang", 4, model="a100"), a_want("other", 2, model="h100", after_s=1)
    h100 = a_host("x", 2, free=1, model="NVIDIA H100")
    made = plan_of(gang, other, free=0, others=(h100,))
    assert made.waits[1] == Wait(
        claim_id="other", place=1, reason="Waiting for 1 of 2 h100 devices."
    )


def test_what_can_never_start_is_said_at_once(plan_of, a_want):
    """The user learns that waiting is in vain as the pool is, and what would help."""
    made = plan_of(a_want("c", 5, model="a100"))
    assert made.waits == (
        Wait(
            claim_id="c",
            place=1,
            reason="Not possible as the pool is: 5 a100 devices wanted, 4 joined."
            " It starts when a host brings more.",
            never=True,
        ),
    )


def test_an_empty_pool_grants_nothing_and_says_so(a_want):
    """Before the first host has joined there is nothing to wait for but a host."""
    made = plan(Snapshot(hosts=(), wants=(a_want("c", 1),)))
    assert made.grants == ()
    assert [wait.reason for wait in made.waits] == [
        "Not possible as the pool is: 1 device wanted, 0 joined. It starts when a host brings more."
    ]


@pytest.mark.parametrize(
    ("terms", "hosts", "reason"),
    [
        ({"minimum": 1}, 1, "1 device on 1 host granted."),
        ({"minimum": 3}, 2, "3 devices on 2 hosts granted."),
    ],
)
def test_a_grant_says_what_was_given(terms, hosts, reason, a_host, a_want):
    """Devices and hosts are counted in the sentence."""
    pool = tuple(a_host(f"h{n}", 2) for n in range(hosts))
    assert plan(Snapshot(hosts=pool, wants=(a_want("c", **terms),))).grants[0].reason == reason
