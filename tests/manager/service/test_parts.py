"""Parts of devices and workers with several: who gets what, and what is left of a device."""

from dataclasses import replace
from functools import partial

import pytest

from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.standing import free_devices, standing_of
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.device import DeviceState
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.pool.worker_devices import worker_devices

GIB = 2**30
HALF, TWO = worker_devices(0.5), worker_devices(2)


def _part(memory_gib: int):
    return worker_devices(1, memory_gib * GIB)


def _devices(pool, *claims) -> list[str]:
    return [uuid for claim in claims for lease in pool.leases(claim) for uuid in lease.devices]


def _wait(pool, claim) -> str:
    return pool.service.waits.of(claim.id).reason


async def _mixed(pool, small: int = 1, large: int = 1):
    """A host of small devices and one of large ones, 16 and 80 GiB."""
    small_host, large_host = await pool.joined("small", small), pool.host("large", large)
    large_host.devices = tuple(
        replace(device, model="Large 80", memory_bytes=80 * GIB) for device in large_host.devices
    )
    await pool.join(large_host)
    return small_host, large_host


# Who shares


async def test_one_users_parts_share_a_device(pool):
    """Two halves are one device, and the other one stays whole."""
    await pool.joined("a", 2)
    claims = [await pool.claim(devices=HALF) for _ in range(2)]
    assert len(set(_devices(pool, *claims))) == 1
    assert [lease.share for claim in claims for lease in pool.leases(claim)] == [500, 500]
    assert len(free_devices(pool.service.books)["a"]) == 1


async def test_workers_of_one_claim_share_a_device(pool):
    """A claim of two halves is two workers on one device."""
    await pool.joined("a", 2)
    claim = await pool.claim(2, devices=HALF)
    assert len(pool.leases(claim)) == 2
    assert len(set(_devices(pool, claim))) == 1


@pytest.mark.parametrize(
    ("sharing", "user", "shares"),
    [
        ("same_user", "bob", False),
        ("same_queue", "bob", True),
        ("same_queue", "eve", False),
        ("anyone", "eve", True),
    ],
)
async def test_policy_says_who_shares(pool, sharing, user, shares):
    """By default one user's claims alone; a queue's users, or anybody, if an admin says so."""
    await pool.joined("a", 1)
    source = f"""
        [queues.team]
        users = ["ann", "bob"]
        [queues.others]
        users = ["*"]
        [scheduling]
        sharing = "{sharing}"
    """
    command = ApplyPolicy(source=source, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))
    await pool.claim(devices=HALF, user="ann")
    other = await pool.claim(devices=HALF, user=user)
    assert (other.phase is Phase.STARTING) is shares


async def test_whole_device_is_none_that_somebody_has_a_part_of(pool):
    """Its claim waits; and a part does not come beside a whole one."""
    await pool.joined("a", 1)
    part = await pool.claim(devices=HALF)
    whole = await pool.claim()
    assert whole.phase is Phase.PENDING
    agent = pool.agents["a"]
    await pool.come_up(agent)
    await pool.release(part)
    await pool.wind_down(agent)
    assert pool.now(whole).phase is Phase.STARTING
    assert (await pool.claim(devices=HALF)).phase is Phase.PENDING


async def test_no_more_than_a_device_is_leased_of_it(pool):
    """Three parts of 0.4 are two devices' worth, however much is left of each."""
    await pool.joined("a", 1)
    claims = [await pool.claim(devices=worker_devices(0.4)) for _ in range(3)]
    assert [claim.phase for claim in claims] == [Phase.STARTING] * 2 + [Phase.PENDING]
    [standing] = standing_of(pool.service.books, "a")
    assert (standing.left, standing.has_room, standing.is_free) == (200, True, False)


async def test_part_is_leased_again_when_it_is_free_and_not_before(pool):
    """While one of two parts is being freed nothing comes to the device; the other one stays."""
    agent = await pool.joined("a", 1)
    stays, goes = [await pool.claim(devices=HALF) for _ in range(2)]
    await pool.come_up(agent)
    await pool.release(goes)
    waits = await pool.claim(devices=HALF)
    await pool.make_so(agent)
    assert waits.phase is Phase.PENDING
    agent.all_stopped()
    device = agent.devices[0].uuid
    in_use = (*(lease.id for lease in pool.leases(stays)), "l-gone")
    agent.states[device] = DeviceState(in_use_by=in_use)
    await pool.say(agent)
    assert pool.now(waits).phase is Phase.PENDING
    agent.states[device] = DeviceState(in_use_by=in_use[:1])
    await pool.say(agent)
    assert pool.now(waits).phase is Phase.STARTING
    assert pool.now(stays).phase is Phase.RUNNING


async def test_long_line_is_planned_for_who_fits_what_is_left(pool, monkeypatch):
    """With no whole device free, a part of one may still be."""
    monkeypatch.setattr("jupyter_gpupool.manager.service.planning._FEW_CLAIMS", 0)
    await pool.joined("a", 1)
    assert (await pool.claim(devices=HALF)).phase is Phase.STARTING
    assert (await pool.claim()).phase is Phase.PENDING
    assert (await pool.claim(devices=worker_devices(0.6))).phase is Phase.PENDING
    assert (await pool.claim(devices=HALF)).phase is Phase.STARTING


async def test_shrinking_takes_one_of_two_workers_on_a_device(pool):
    """They look the same to a pass; only as many go as have to."""
    agent = await pool.joined("a", 1)
    claim = await pool.claim(2, devices=HALF)
    await pool.come_up(agent)
    await pool.scale(claim, 1, 1)
    await pool.pass_s(31)
    phases = [lease.phase for lease in pool.leases(claim)]
    assert sorted(phases) == [LeasePhase.ENDING, LeasePhase.RUNNING]


async def test_who_waits_for_parts_is_told_so(pool):
    """How many and how large; and how many would fit if there are too many."""
    await pool.joined("a", 1)
    await pool.claim()
    assert _wait(pool, await pool.claim(2, devices=HALF)) == (
        "Waiting for 2 of 2 parts (0.5 of a device)."
    )
    assert "3 parts (0.5 of a device) wanted, 2 would fit" in _wait(
        pool, await pool.claim(3, devices=HALF)
    )


# What is charged


async def test_user_is_charged_for_their_part(pool):
    """A quarter of a device for an hour is a quarter of a device-hour; two devices are two."""
    await pool.joined("a", 3)
    await pool.claim(devices=worker_devices(0.25), user="ann")
    await pool.claim(devices=TWO, user="bob")
    held = {leaf: used.decayed.held for leaf, used in pool.service.books.usage.items()}
    assert held == {"default/ann": 250, "default/bob": 2000}


# Several devices a worker


async def test_worker_with_several_devices_has_them_on_one_host(pool):
    """One lease, one worker; hosts with fewer are of no use."""
    await pool.joined("a", 1)
    agent = await pool.joined("b", 2)
    claim = await pool.claim(devices=TWO)
    [lease] = pool.leases(claim)
    assert (lease.host_id, set(lease.devices)) == ("b", {device.uuid for device in agent.devices})
    [wanted] = [w for c in pool.desired(agent).claims for w in c.workers]
    assert wanted.devices == lease.devices
    await pool.come_up(agent)
    assert pool.now(claim).phase is Phase.RUNNING
    assert [each.is_free for each in standing_of(pool.service.books, "b")] == [False, False]


async def test_worker_gets_no_several_mig_instances(pool):
    """CUDA would show it the first one alone."""
    agent = pool.host("a", 4)
    agent.devices = tuple(replace(device, parent="GPU-1") for device in agent.devices)
    await pool.join(agent)
    claim = await pool.claim(devices=TWO)
    assert claim.phase is Phase.PENDING
    assert (await pool.claim()).phase is Phase.STARTING


# Parts that are told in bytes


async def test_part_in_bytes_is_a_share_of_the_smallest_device_with_room(pool):
    """10 GiB are 625 thousandths of 16 GiB; the second claim finds room on the large one."""
    await _mixed(pool)
    claims = [await pool.claim(devices=_part(10)) for _ in range(2)]
    leases = [lease for claim in claims for lease in pool.leases(claim)]
    assert [(lease.host_id, lease.share) for lease in leases] == [("small", 625), ("large", 125)]


async def test_part_that_only_a_large_device_has_goes_there(pool):
    """The smaller ones are out of the question."""
    await _mixed(pool)
    [lease] = pool.leases(await pool.claim(devices=_part(20)))
    assert (lease.host_id, lease.share) == ("large", 250)


async def test_part_as_large_as_a_device_is_all_of_it(pool):
    """And shares with nobody."""
    await pool.joined("a", 2)
    [lease] = pool.leases(await pool.claim(devices=_part(16)))
    assert lease.share == 1000


async def test_workers_of_a_claim_get_the_same_share(pool):
    """It grows on devices of the kind it began on, though the small one has room again."""
    small, _ = await _mixed(pool)
    blocks = await pool.claim(devices=_part(10))
    await pool.come_up(small)
    claim = await pool.claim(devices=_part(10))
    await pool.release(blocks)
    await pool.wind_down(small)
    await pool.come_up(pool.agents["large"])
    await pool.scale(claim, 1, 3)
    leases = pool.leases(claim)
    assert [(lease.host_id, lease.share) for lease in leases] == [("large", 125)] * 3


async def test_part_larger_than_any_device_is_never_possible(pool):
    """The sentence names the largest there is."""
    await _mixed(pool)
    claim = await pool.claim(devices=_part(100))
    assert pool.service.waits.of(claim.id).never
    assert "The largest such device is Large 80 with 80 GiB." in _wait(pool, claim)
    claim = await pool.claim(devices=_part(20), model="sim")
    assert "The largest such device is Sim 16 with 16 GiB." in _wait(pool, claim)


async def test_whole_device_may_be_asked_to_be_large(pool):
    """`min_gpu_memory` is no part of one."""
    await _mixed(pool)
    [lease] = pool.leases(await pool.claim(memory_bytes=20 * GIB))
    assert (lease.host_id, lease.share) == ("large", 1000)


async def test_pool_that_no_part_could_hold_is_refused_at_once(pool):
    """With the sizes; nobody waits for three failed starts."""
    await _mixed(pool)
    with pytest.raises(BadRequest, match=r"50 GiB, and 0\.5 of the largest device is 40 GiB"):
        await pool.claim(devices=HALF, options=WorkerOptions(rmm_pool_size="50GiB"))
    with pytest.raises(BadRequest, match="of the largest device is 8 GiB"):
        await pool.claim(devices=HALF, options=WorkerOptions(rmm_pool_size="9GiB"), model="Sim")
    await pool.claim(devices=HALF, options=WorkerOptions(rmm_pool_size="40GiB"))
