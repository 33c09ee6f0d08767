"""Builders for the tests of scheduling: hosts, wants, and what the next pass sees of a plan."""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName
from jupyter_gpupool.scheduling.snapshot import (
    FreeDevice,
    HostView,
    Obstacle,
    Plan,
    Snapshot,
    Want,
)

sys.path.insert(0, str(Path(__file__).parent))

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def a_host() -> Callable[..., HostView]:
    """Builds a host with devices named after it (`h1-0`, …), of which the first are free.

    `obstacles` are those of its devices from the last one on.
    """

    def build(
        name: str,
        devices: int,
        *,
        free: int | None = None,
        model: str = "NVIDIA A100",
        memory_bytes: int = 40 * 2**30,
        durable: bool = False,
        schedulers: int = 0,
        can_start: bool = True,
        obstacles: Sequence[Obstacle] = (),
    ) -> HostView:
        capacity = tuple(
            FreeDevice(uuid=DeviceUuid(f"{name}-{n}"), model=model, memory_bytes=memory_bytes)
            for n in range(devices)
        )
        return HostView(
            id=HostId(name),
            durable=durable,
            schedulers=schedulers,
            free=capacity if free is None else capacity[:free],
            capacity=capacity,
            can_start=can_start,
            obstacles=dict(zip((d.uuid for d in reversed(capacity)), obstacles, strict=False)),
        )

    return build


@pytest.fixture(scope="session")
def a_want() -> Callable[..., Want]:
    """Builds the want of a claim that asked `after_s` seconds past noon."""

    def build(
        name: str, minimum: int, maximum: int | None = None, *, after_s: int = 0, **terms: object
    ) -> Want:
        return Want(
            claim_id=ClaimId(name),
            owner=UserName("ann"),
            since=NOON + timedelta(seconds=after_s),
            minimum=minimum,
            maximum=minimum if maximum is None else maximum,
            **terms,  # type: ignore[arg-type]
        )

    return build


@pytest.fixture(scope="session")
def granted() -> Callable[[Plan], dict[str, list[str]]]:
    """Reads a plan as claim → the devices it gets."""

    def read(made: Plan) -> dict[str, list[str]]:
        return {grant.claim_id: [p.device for p in grant.devices] for grant in made.grants}

    return read


@pytest.fixture(scope="session")
def applied() -> Callable[[Snapshot, Plan], Snapshot]:
    """Gives the snapshot the next pass sees once a plan was carried out."""

    def apply(snapshot: Snapshot, made: Plan) -> Snapshot:
        taken = {placed.device for grant in made.grants for placed in grant.devices}
        return Snapshot(
            hosts=tuple(_without(host, taken) for host in snapshot.hosts),
            wants=tuple(left for want in snapshot.wants if (left := _left_of(want, made))),
        )

    return apply


def _without(host: HostView, taken: set[DeviceUuid]) -> HostView:
    return HostView(
        id=host.id,
        durable=host.durable,
        schedulers=host.schedulers,
        free=tuple(device for device in host.free if device.uuid not in taken),
        capacity=host.capacity,
        can_start=host.can_start,
    )


def _left_of(want: Want, made: Plan) -> Want | None:
    grants: Sequence = [grant for grant in made.grants if grant.claim_id == want.claim_id]
    if not grants:
        return want
    more = want.maximum - len(grants[0].devices)
    if more == 0:
        return None
    return Want(
        claim_id=want.claim_id,
        owner=want.owner,
        since=want.since,
        minimum=0,
        maximum=more,
        model=want.model,
        gpu_memory_bytes=want.gpu_memory_bytes,
        scheduler_host=grants[0].scheduler_host,
        avoid=want.avoid,
    )
