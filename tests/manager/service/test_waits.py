"""The reason of a wait keeps up with what happens to the devices."""

from functools import partial

import pytest

from jupyter_gpupool.manager.service.hosts import HostSaid, host_said
from jupyter_gpupool.pool.device import DeviceProcess, DeviceState, Health

FOREIGN = DeviceState(foreign=(DeviceProcess(pid=1, memory_bytes=1),))
ELSEWHERE = DeviceState(held_elsewhere=True)
SICK = DeviceState(health=Health.QUARANTINED, problem="ECC.")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (FOREIGN, ELSEWHERE, "1 held by another pool on the host"),
        (ELSEWHERE, SICK, "1 quarantined"),
        (SICK, FOREIGN, "1 in use outside the pool"),
    ],
)
async def test_reason_follows_what_keeps_a_device(pool, before, after, told):
    """Not only what becomes free is news to those who wait."""
    agent = pool.host("a", 1)
    [uuid] = (device.uuid for device in agent.devices)
    agent.states = {uuid: before}
    await pool.join(agent)
    claim = await pool.claim(1)
    agent.states = {uuid: after}
    await pool.say(agent)
    assert pool.service.waits.of(claim.id).reason == f"Waiting for 1 of 1 device; {told}."


async def test_device_being_freed_is_told(pool):
    """It is nobody's any more, and not yet anybody else's."""
    agent = await pool.joined(devices=1)
    await pool.release(await pool.claim(1))
    await pool.wind_down(agent)
    agent.states = {agent.devices[0].uuid: DeviceState(in_use_by=("l-old",))}
    await pool.say(agent)
    claim = await pool.claim(1)
    assert "1 still being freed" in pool.service.waits.of(claim.id).reason


async def test_host_that_can_start_nothing_is_told(pool):
    """Its devices are there, and nobody gets them now."""
    agent = await pool.joined(devices=1)
    full = agent.report().model_copy(update={"can_start": False, "problem": "No space."})
    await pool.service.execute(partial(host_said, command=HostSaid(report=full)))
    claim = await pool.claim(1)
    assert "1 on a host that takes nothing more now" in pool.service.waits.of(claim.id).reason
