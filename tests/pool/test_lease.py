"""A lease: when its device is still its own, and that it never comes back."""

from datetime import UTC, datetime, timedelta

import pytest

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, LeaseId
from jupyter_gpupool.pool.lease import Lease, LeasePhase

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def a_lease():
    def build(phase: LeasePhase) -> Lease:
        return Lease(
            id=LeaseId("l-1"),
            claim_id=ClaimId("c-1"),
            host_id=HostId("h-1"),
            device=DeviceUuid("GPU-1"),
            phase=phase,
            granted_at=NOON,
            phase_since=NOON,
        )

    return build


@pytest.mark.parametrize("phase", LeasePhase)
def test_only_an_ended_lease_frees_its_device(phase, a_lease):
    """A worker on the way out, or thought dead, still has its device."""
    assert a_lease(phase).holds_device is (phase is not LeasePhase.ENDED)


@pytest.mark.parametrize("phase", LeasePhase)
def test_a_lease_on_its_way_out_does_not_count(phase, a_lease):
    """A claim counts on workers that are coming or there, never on those that go."""
    assert a_lease(phase).counts is (phase in (LeasePhase.GRANTED, LeasePhase.RUNNING))


def test_moving_writes_down_when_and_why(a_lease):
    """The reason and the time of a phase are kept, the time of the grant stays."""
    later = NOON + timedelta(minutes=1)
    moved = a_lease(LeasePhase.GRANTED).moved(LeasePhase.RUNNING, "Registered.", later)
    assert (moved.phase, moved.reason) == (LeasePhase.RUNNING, "Registered.")
    assert (moved.phase_since, moved.granted_at) == (later, NOON)


@pytest.mark.parametrize("phase", LeasePhase)
def test_an_ended_lease_never_comes_back(phase, a_lease):
    """Whatever is said late, a freed device is not taken again by its old lease."""
    with pytest.raises(ValueError, match="lease l-1 has ended"):
        a_lease(LeasePhase.ENDED).moved(phase, "Late.", NOON)
