"""What a claim's owner reads in each phase of its life: pure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jupyter_gpupool.manager.api.explaining import Situation, explain
from jupyter_gpupool.manager.service.forecasts import Start
from jupyter_gpupool.pool.claim import Phase, SchedulerPlace, Warning_
from jupyter_gpupool.pool.claim_events import EndKind, Granted, Rescaled, StartFailed
from jupyter_gpupool.pool.claim_machine import step
from jupyter_gpupool.pool.claim_step import open_claim
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds
from jupyter_gpupool.protocol.using import KernelState, KernelView
from jupyter_gpupool.scheduling.decisions import Constraint, Waiting
from jupyter_gpupool.scheduling.expected import Expected, Source
from jupyter_gpupool.scheduling.prospects import Prospects

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FOUR = Prospects(devices=4, free=1, leased=3, hindered={}, joined=("4 × A100",))

THIRD = Waiting(
    claim_id="c",
    place=3,
    constraint=Constraint.DEVICES,
    reason="2 claims ahead; waiting for 1 of 1 device.",
)
NOBODYS: dict[str, int] = {}


@pytest.fixture
def lines():
    """What is read, five minutes after noon, of a claim for up to two workers made at noon."""

    def read(
        phase,
        *leases,
        wait=None,
        kernels=(),
        gave_up=False,
        yours=NOBODYS,
        start=None,
        expected=None,
        **fields,
    ):
        request = ClaimRequest(workers=WorkerBounds(1, 2))
        claim = replace(open_claim("c", "ann", request, NOON).claim, phase=phase, **fields)
        seen = Situation(
            claim=claim,
            leases=[_lease(n, one) for n, one in enumerate(leases)],
            wait=wait,
            prospects=FOUR,
            kernels=kernels,
            gave_up=gave_up,
            now=NOON + 5 * MINUTE,
            yours=yours,
            start=start,
            expected=expected,
        )
        return list(explain(seen).lines)

    return read


def test_pending_claim_reads_its_place_and_how_long_it_waits(lines):
    """Most important first."""
    assert lines(Phase.PENDING, wait=THIRD) == [
        "It is number 3 in line. 2 claims ahead; waiting for 1 of 1 device.",
        "4 devices of the pool would do: 1 free, 3 held by other claims.",
        "When it starts cannot be told: too little is known of how long others go on.",
        "It waits for 5 min now.",
    ]


def test_thought_start_is_said_with_what_it_rests_on(lines):
    """The median, the late one, and that lengths were learned."""
    thought = Start(at=NOON + 30 * MINUTE, by=NOON + 65 * MINUTE, is_learned=True)
    learned = Expected(median_s=600.0, at_most_s=900.0, source=Source.USER, learned_from=7)
    told = lines(Phase.PENDING, wait=THIRD, start=thought, expected=learned)
    start, took = told[1:3]
    assert start == (
        "It is thought to start in 25 min, with nine in ten within 1 h;"
        " how long claims take was learned from past ones."
    )
    assert took == (
        "It is thought to take 10 min,"
        " learned from 7 past claims of the same user, queue and shape."
    )


def test_deadline_that_is_thought_to_be_missed_is_told(lines):
    """Ten minutes of work do not fit between a start at half past and a deadline before."""
    start = Start(at=NOON + 30 * MINUTE, by=NOON + 30 * MINUTE)
    took = Expected(median_s=600.0, at_most_s=600.0, source=Source.SAID)
    request = ClaimRequest(workers=WorkerBounds(1, 2), deadline=NOON + 35 * MINUTE)
    told = lines(Phase.PENDING, wait=THIRD, start=start, expected=took, request=request)
    assert "Its deadline, in 30 min, is thought to be missed." in told


def test_owner_reads_what_their_other_claims_hold(lines):
    """What they can give back themselves, by its name."""
    one = lines(Phase.PENDING, yours={"old": 2})
    assert one[1] == "2 of 4 held by your claim old."
    two = lines(Phase.PENDING, yours={"old": 2, "tests": 1})
    assert two[1] == "3 of 4 held by your other claims: 2 by old, 1 by tests."


def test_claim_that_failed_to_start_reads_why(lines):
    """And how many tries are left, whatever its user has changed since."""
    claim = open_claim("c", "ann", ClaimRequest(workers=WorkerBounds(1, 2)), NOON).claim
    for event in (
        Granted(reason="Granted.", scheduler_host="h", longest_life=MINUTE),
        StartFailed(reason="No module named cupy."),
        Rescaled(reason="ann asks for 1 worker.", bounds=WorkerBounds(1, 1)),
    ):
        claim = step(claim, event, NOON).claim
    told = lines(claim.phase, failed_starts=claim.failed_starts, story=claim.story)
    assert "1 of 3 tries to start it came to nothing: No module named cupy." in told


def test_starting_claim_reads_who_is_missing(lines):
    """Scheduler and workers, each for themselves."""
    place = SchedulerPlace(host_id="h")
    told = lines(Phase.STARTING, "granted", "running", scheduler=place, failed_starts=1)
    assert told == [
        (
            "It is starting for 5 min now: its scheduler does not listen yet,"
            " 1 of 2 workers registered."
        ),
        "This is try 2 of 3.",
    ]


def test_starting_claim_reads_that_its_scheduler_listens(lines):
    """Then only workers are missing."""
    place = SchedulerPlace(host_id="h", address="tls://h:1")
    assert "its scheduler listens" in lines(Phase.STARTING, "granted", scheduler=place)[0]


def test_complete_claim_reads_nothing_of_devices(lines):
    """It lacks nothing."""
    told = lines(Phase.RUNNING, "running", "running", started_at=NOON)
    assert told == ["It runs for 5 min now, with 2 of up to 2 workers."]


def test_claim_that_changes_reads_who_comes_and_goes(lines):
    """On the way up, on the way out, and what it would still take."""
    told = lines(Phase.RUNNING, "granted", "retiring", started_at=NOON)
    assert told[1:] == [
        "1 worker on the way up.",
        "1 worker on the way out.",
        "It would take 1 more.",
        "4 devices of the pool would do: 2 its own, 1 free, 1 held by other claims.",
    ]


def test_claim_whose_workers_fail_reads_that_it_gets_no_more(lines):
    """Free devices would not help it."""
    told = lines(Phase.RUNNING, "running", gave_up=True)
    assert told[1:] == ["No more are started for now, for too many failed; its logs say why."]


def test_warned_claim_reads_when_and_why(lines):
    """Right after what it has."""
    warning = Warning_(rule="idle", deadline=NOON + 7 * MINUTE, reason="Idle for 30 min.")
    told = lines(Phase.RUNNING, "running", "running", warning=warning)
    assert told[1] == "It will lose devices in 2 min: Idle for 30 min."


def test_claim_reads_how_long_it_is_kept_and_lives(lines):
    """A keep that is over is no news."""
    limits = {"kept_until": NOON + 15 * MINUTE, "expires_at": NOON + 65 * MINUTE}
    two = ("running", "running")
    assert lines(Phase.RUNNING, *two, **limits)[1:] == [
        "Nothing takes it as idle for another 10 min.",
        "It ends by itself in 1 h.",
    ]
    assert lines(Phase.RUNNING, *two, kept_until=NOON)[1:] == []


@pytest.mark.parametrize(
    ("state", "quiet_since", "told"),
    [
        (KernelState.BUSY, None, "Its kernel a.ipynb is busy."),
        (KernelState.IDLE, NOON, "Its kernel a.ipynb is idle, quiet for 5 min."),
        (KernelState.DEAD, None, "Its kernel a.ipynb is gone."),
        (KernelState.UNKNOWN, None, "What its kernel a.ipynb does is not known."),
    ],
)
def test_claim_reads_what_its_kernels_do(state, quiet_since, told, lines):
    """As far as anybody knows."""
    kernel = KernelView(
        id="k",
        name="a.ipynb",
        host="h",
        boot_id="b",
        pid=1,
        started=1,
        attached_at=NOON,
        state=state,
        quiet_since=quiet_since,
    )
    assert lines(Phase.RUNNING, "running", "running", kernels=[kernel])[1:] == [told]


def test_ending_claim_reads_what_is_still_held(lines):
    """A device is free only when it is proven."""
    assert lines(Phase.ENDING, "ending", reason="Released.") == [
        "It is ending for 5 min now: Released.",
        "1 device not proven free yet.",
    ]


def test_ended_claim_reads_how_when_and_why(lines):
    """And for how long it had run."""
    ended = {"end": EndKind.EXPIRED, "reason": "Its time limit was reached."}
    ran = lines(Phase.ENDED, started_at=NOON - MINUTE, **ended)
    assert ran == [
        "It ended 5 min ago (expired): Its time limit was reached.",
        "It had run for 1 min.",
    ]
    assert lines(Phase.ENDED, **ended)[1] == "It never ran."


def test_every_phase_has_something_to_say(lines):
    """Nobody asks in vain."""
    assert all(lines(phase) for phase in Phase)


def _lease(number, phase):
    return Lease(
        id=f"l-{number}",
        claim_id="c",
        host_id="h",
        device=f"GPU-{number}",
        phase=LeasePhase(phase),
        granted_at=NOON,
        phase_since=NOON,
    )
