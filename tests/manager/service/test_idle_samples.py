"""One sample of a claim whose hosts and kernels each know a part."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jupyter_gpupool.manager.service.activity import KernelWord
from jupyter_gpupool.manager.service.idle_samples import Surroundings, sample_of
from jupyter_gpupool.manager.service.sightings import Sighting, Sightings
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol.link import ClaimUse, HostReport
from jupyter_gpupool.protocol.using import KernelState

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
OF_SCHEDULER = frozenset({Signal.TASKS, Signal.CALLS, Signal.CLIENTS})
IDLE = KernelWord(state=KernelState.IDLE, quiet_for_s=600.0, was_heard=True)
BUSY = KernelWord(state=KernelState.BUSY, was_heard=True)
DEAD = KernelWord(state=KernelState.DEAD, was_heard=True)
UNKNOWN = KernelWord(state=KernelState.UNKNOWN, was_heard=True)


def a_window(begin_s: float = 90.0, end_s: float = 100.0, **more) -> Sighting:
    """What the scheduler's host, which has no devices, saw of a claim at rest."""
    use = ClaimUse(
        claim_id="c-1",
        begin_ms=round(begin_s * 1000),
        end_ms=round(end_s * 1000),
        **{"has_scheduler": True, "quiet": OF_SCHEDULER, "clients": 1} | more,
    )
    return Sighting(host_id="s", life="boot", begin_s=begin_s, end_s=end_s, use=use)


def of_devices(begin_s: float, end_s: float, *, host: str = "a", **more) -> Sighting:
    """What a host of devices saw of them, which rest."""
    seen = {
        "has_scheduler": False,
        "leases": (f"l-{host}",),
        "quiet": frozenset({Signal.MEMORY}),
        "gpu_peak": 0,
        "gpu_mean": 0,
        "held_bytes": 1,
        "clients": None,
    }
    return replace(a_window(begin_s, end_s, **seen | more), host_id=host)


def beside(*elsewhere: Sighting, leases=("l-a",), kernels=(), gone: int = 0) -> Surroundings:
    """What there is beside a window, a second after it has ended."""
    return Surroundings(
        elsewhere=elsewhere,
        leases=frozenset(leases),
        kernels=kernels,
        gone=gone,
        now=NOON,
        now_s=101.0,
    )


def test_hosts_are_put_together():
    """Tasks of the scheduler's host, devices of the others; each lease has to be known."""
    sample = sample_of(a_window(), beside(of_devices(85.0, 101.0)))
    assert (sample.begin_ms, sample.end_ms) == (90_000, 100_000)
    assert sample.at == NOON - timedelta(seconds=1)
    assert sample.quiet == OF_SCHEDULER | {Signal.MEMORY, Signal.KERNEL}
    assert (sample.gpu_peak, sample.held_bytes) == (0, 1)
    lacking = sample_of(a_window(), beside(of_devices(85.0, 101.0), leases=("l-a", "l-b")))
    assert lacking.gpu_peak is None


def test_one_busy_device_makes_the_claim_busy():
    """Wherever it is, and in whichever part of the window."""
    hosts = (
        of_devices(80.0, 91.0, gpu_peak=900, gpu_mean=500),
        of_devices(91.0, 101.0),
        of_devices(85.0, 101.0, host="b"),
    )
    sample = sample_of(a_window(), beside(*hosts, leases=("l-a", "l-b")))
    assert sample.gpu_peak == 900


@pytest.mark.parametrize(("end_s", "is_known"), [(80.0, True), (70.0, False)])
def test_what_a_host_saw_last_holds_until_its_next_report_is_overdue(end_s, is_known):
    """It would have told of anything that stirs; a silent one tells nothing."""
    sample = sample_of(a_window(), beside(of_devices(60.0, end_s)))
    assert (sample.gpu_peak is not None) is is_known
    assert (Signal.MEMORY in sample.quiet) is is_known


@pytest.mark.parametrize(
    ("kernels", "active", "quiet"),
    [
        ((), False, True),
        ((IDLE, IDLE), False, True),
        ((IDLE, BUSY), True, False),
        ((replace(IDLE, quiet_for_s=5.0),), True, False),
        ((IDLE, UNKNOWN), False, False),
        ((DEAD,), False, True),
    ],
)
def test_a_kernel_counts_for_the_time_of_the_window(kernels, active, quiet):
    """Busy until a moment ago is busy in it; nobody's word is no rest."""
    sample = sample_of(a_window(), beside(kernels=kernels))
    assert (Signal.KERNEL in sample.active) is active
    assert (Signal.KERNEL in sample.quiet) is quiet


@pytest.mark.parametrize(
    ("kernels", "gone", "clients", "orphaned"),
    [
        ((), 0, 0, False),
        ((), 1, 0, True),
        ((DEAD,), 1, 0, True),
        ((IDLE,), 1, 0, False),
        ((UNKNOWN,), 0, 0, None),
        ((), 1, 1, False),
        ((), 1, None, None),
    ],
    ids=["unused", "gone", "dead", "restarts", "asleep", "a client", "no scheduler's word"],
)
def test_an_orphan_has_lost_all_who_used_it(kernels, gone, clients, orphaned):
    """For good, as somebody says who knows; else it is not known, or not so."""
    sample = sample_of(a_window(clients=clients), beside(kernels=kernels, gone=gone))
    assert sample.orphaned is orphaned


def a_report(*uses: ClaimUse, life: str = "boot") -> HostReport:
    """Of host s."""
    return HostReport(
        host_id="s",
        name="s",
        address="10.0.0.1",
        agent_pid=1,
        agent_version="0",
        generation=0,
        at=NOON,
        cpus=1,
        memory_bytes=1,
        life=life,
        uses=uses,
    )


def test_windows_stand_on_the_managers_clock():
    """The last one has just ended, by whatever clock the host has."""
    sightings = Sightings()
    sightings.hear(a_report(a_window(10, 20).use, a_window(20, 30).use), now_s=500.0)
    seen = sightings.of("c-1", "s")
    assert [(each.begin_s, each.end_s) for each in seen] == [(480, 490), (490, 500)]
    assert sightings.elsewhere("c-1", "s") == ()


def test_what_was_told_before_is_not_taken_twice():
    """A first report on a connection repeats some; another boot has another clock."""
    sightings = Sightings()
    sightings.hear(a_report(a_window(10, 20).use), now_s=500.0)
    sightings.hear(a_report(a_window(10, 20).use, a_window(20, 30).use), now_s=510.0)
    sightings.hear(a_report(a_window(1, 2).use, life="next"), now_s=600.0)
    seen = sightings.of("c-1", "s")
    assert [(each.life, each.use.end_ms) for each in seen] == [
        ("boot", 20_000),
        ("boot", 30_000),
        ("next", 2000),
    ]


def test_what_was_judged_is_dropped_but_for_the_last():
    """It holds on until the next report; a claim that has ended leaves nothing."""
    sightings = Sightings()
    for second in (10, 20, 30):
        sightings.hear(a_report(a_window(second, second + 10).use), now_s=500.0 + second)
    sightings.drop_before("c-1", 600.0)
    assert [each.end_s for each in sightings.of("c-1", "s")] == [530.0]
    sightings.forget(["c-1"])
    assert sightings.of("c-1", "s") == ()


@pytest.mark.parametrize(
    "nonsense",
    [
        {"begin_ms": 0, "end_ms": 3_600_001},
        {"begin_ms": 2, "end_ms": 1},
        {"active": OF_SCHEDULER},
        {"gpu_peak": 2000, "gpu_mean": 0},
        {"gpu_peak": 1, "gpu_mean": 2},
    ],
)
def test_window_that_makes_no_sense_is_unknown_time(nonsense):
    """And the report that it came with counts for all else."""
    sightings = Sightings()
    sightings.hear(a_report(a_window().use.model_copy(update=nonsense)), now_s=500.0)
    assert sightings.of("c-1", "s") == ()
