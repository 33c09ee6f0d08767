"""What counts as a person's work in a kernel, and since when it is quiet."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce

import pytest

from jupyter_gpupool.server.activity import Cause, KernelSample, Said, after, restarted

UP = datetime(2026, 11, 5, 12, tzinfo=UTC)
Sample = Callable[..., KernelSample]


@pytest.fixture
def sample() -> Sample:
    """Build what a kernel says some seconds after it came up."""

    def build(
        second: int, said: Said, cause: Cause = Cause.CODE, request: str = "r-1"
    ) -> KernelSample:
        return KernelSample(UP + timedelta(seconds=second), said, cause, request)

    return build


def test_a_fresh_kernel_is_quiet_since_it_came_up() -> None:
    """Starting it was the last thing a person did."""
    assert _quiet_since([]) == UP


def test_code_that_runs_is_not_quiet(sample: Sample) -> None:
    """However long it takes."""
    assert _quiet_since([sample(1, Said.BUSY), sample(1, Said.SHOWN)]) is None


def test_quiet_begins_when_the_code_has_ended(sample: Sample) -> None:
    """Not when it was sent."""
    said = [sample(1, Said.BUSY), sample(1, Said.SHOWN), sample(60, Said.IDLE)]
    assert _quiet_since(said) == UP + timedelta(seconds=60)


def test_silent_code_is_no_activity(sample: Sample) -> None:
    """Extensions run it by themselves; its code is never shown."""
    assert _quiet_since([sample(1, Said.BUSY), sample(2, Said.IDLE)]) == UP


def test_polls_and_debugging_are_no_activity(sample: Sample) -> None:
    """Lab asks on its own, minute after minute."""
    said = [sample(1, Said.BUSY, Cause.OTHER), sample(2, Said.IDLE, Cause.OTHER)]
    assert _quiet_since(said) == UP


def test_a_poll_between_does_not_end_the_code(sample: Sample) -> None:
    """Each end belongs to its own request."""
    said = [
        sample(1, Said.BUSY),
        sample(1, Said.SHOWN),
        sample(2, Said.BUSY, Cause.OTHER, "poll"),
        sample(3, Said.IDLE, Cause.OTHER, "poll"),
    ]
    assert _quiet_since(said) is None


def test_a_widget_that_is_moved_is_activity(sample: Sample) -> None:
    """Its callback may be hours of work."""
    said = [sample(1, Said.BUSY, Cause.WIDGET)]
    assert _quiet_since(said) is None
    said.append(sample(9, Said.IDLE, Cause.WIDGET))
    assert _quiet_since(said) == UP + timedelta(seconds=9)


def test_two_cells_side_by_side_are_busy_until_both_have_ended(sample: Sample) -> None:
    """Kernels with subshells run them together."""
    said = [
        sample(1, Said.SHOWN, request="one"),
        sample(2, Said.SHOWN, request="two"),
        sample(3, Said.IDLE, request="one"),
    ]
    assert _quiet_since(said) is None
    said.append(sample(4, Said.IDLE, request="two"))
    assert _quiet_since(said) == UP + timedelta(seconds=4)


def test_an_end_whose_beginning_was_missed_is_activity(sample: Sample) -> None:
    """It may have been a person's: rather quiet too late than too early."""
    assert _quiet_since([sample(5, Said.IDLE)]) == UP + timedelta(seconds=5)


def _quiet_since(samples: Sequence[KernelSample]) -> datetime | None:
    work = reduce(after, samples, restarted(UP))
    return None if work.is_busy else work.quiet_since
