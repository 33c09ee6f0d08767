"""What is known of a kernel from what Jupyter servers tell: pure time, no service."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jupyter_gpupool.manager.service.activity import FRESH_FOR_S, Activity
from jupyter_gpupool.pool.kernel import Kernel
from jupyter_gpupool.protocol.using import KernelActivity, KernelState


@pytest.fixture
def activity(manual_clock):
    """Nothing was told yet."""
    return Activity(manual_clock.clock())


@pytest.fixture
def kernel(manual_clock):
    """A kernel of claim c."""
    return Kernel(
        id="k", name="", host="h", boot_id="b", pid=1, started=1, attached_at=manual_clock.wall
    )


@pytest.fixture
def tell(activity, kernel):
    """Tells of the kernel, and gives what is known of it then."""

    def run(state, quiet_for_s=None, *, of="k"):
        told = KernelActivity(kernel=of, state=state, quiet_for_s=quiet_for_s)
        activity.take("c", [kernel], {of: told})
        return activity.views("c", [kernel])[0]

    return run


def test_kernel_nobody_told_of_is_unknown(activity, kernel):
    """Never idle: nobody knows."""
    [view] = activity.views("c", [kernel])
    assert (view.state, view.quiet_since, view.reported_at) == (KernelState.UNKNOWN, None, None)


def test_quiet_is_reckoned_with_the_managers_clock(tell, manual_clock):
    """A server's own clock may be off; a duration is not."""
    view = tell(KernelState.IDLE, 90)
    assert (view.state, view.reported_at) == (KernelState.IDLE, manual_clock.wall)
    assert view.quiet_since == manual_clock.wall - timedelta(seconds=90)


@pytest.mark.parametrize(
    ("state", "quiet_for_s"),
    [(KernelState.BUSY, 0), (KernelState.UNKNOWN, 5), (KernelState.IDLE, None)],
)
def test_no_quiet_is_made_up(state, quiet_for_s, tell):
    """Busy, unknown and unsaid are no quiet since any time."""
    assert tell(state, quiet_for_s).quiet_since is None


def test_last_word_counts(tell):
    """Busy after idle is busy."""
    tell(KernelState.IDLE, 90)
    assert tell(KernelState.BUSY, 0).state is KernelState.BUSY


def test_old_word_is_worth_nothing(tell, activity, kernel, manual_clock):
    """A server that fell silent makes its kernels unknown; when it told last stays known."""
    told_at = tell(KernelState.IDLE, 5).reported_at
    manual_clock.pass_s(FRESH_FOR_S)
    assert activity.views("c", [kernel])[0].state is KernelState.IDLE
    manual_clock.pass_s(0.1)
    [view] = activity.views("c", [kernel])
    assert (view.state, view.quiet_since, view.reported_at) == (KernelState.UNKNOWN, None, told_at)


def test_wrong_wall_clock_ages_no_word(tell, activity, kernel, manual_clock):
    """What counts is the time that has passed."""
    tell(KernelState.IDLE, 5)
    manual_clock.wall += timedelta(hours=5)
    assert activity.views("c", [kernel])[0].state is KernelState.IDLE


def test_dead_stays_dead(tell, activity, kernel, manual_clock):
    """A late word of another server brings nobody back, nor does time."""
    tell(KernelState.DEAD)
    assert tell(KernelState.IDLE, 1).state is KernelState.DEAD
    manual_clock.pass_s(FRESH_FOR_S * 10)
    assert activity.views("c", [kernel])[0].state is KernelState.DEAD


def test_restarted_kernel_is_another_one(tell, activity, kernel):
    """The same id with a new process is not the one that died."""
    tell(KernelState.DEAD)
    restarted = replace(kernel, pid=2)
    assert activity.views("c", [restarted])[0].state is KernelState.UNKNOWN
    busy = KernelActivity(kernel="k", state=KernelState.BUSY)
    activity.take("c", [restarted], {"k": busy})
    assert activity.views("c", [restarted])[0].state is KernelState.BUSY


def test_kernel_of_no_claim_is_ignored(tell):
    """A server tells of all it has."""
    assert tell(KernelState.DEAD, of="other").state is KernelState.UNKNOWN


def test_news_of_one_kernel_leaves_the_others(tell, activity, kernel):
    """Two servers of one user tell of their own kernels."""
    other = replace(kernel, id="other")
    tell(KernelState.IDLE, 5)
    busy = KernelActivity(kernel="other", state=KernelState.BUSY)
    activity.take("c", [kernel, other], {"other": busy})
    states = [view.state for view in activity.views("c", [kernel, other])]
    assert states == [KernelState.IDLE, KernelState.BUSY]


def test_ended_claims_are_forgotten(tell, activity, kernel):
    """They cost no memory."""
    tell(KernelState.IDLE, 5)
    activity.forget(["c"])
    assert activity.views("c", [kernel])[0].reported_at is None
