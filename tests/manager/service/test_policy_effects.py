"""What another policy means for claims that are there: told before, and true afterwards."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from manager_harness.agent_player import an_agent

from jupyter_gpupool.manager.service.policy_changes import ChangePolicy, change_policy
from jupyter_gpupool.manager.service.policy_check import check_policy
from jupyter_gpupool.manager.service.reserving import ReserveDevices, reserve
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import NotAllowed, PoolError
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

KEEP = "[scheduling]\nreclaim = false\n"
BEFORE = f"""
[queues.vision]
users = ["ann", "bob"]
[queues.others]
users = ["*"]
[priorities.exam]
rank = 300
{KEEP}"""
NO_VISION = f'[queues.others]\nusers = ["*"]\n[priorities.exam]\nrank = 300\n{KEEP}'


@pytest.fixture
async def teams(pool):
    """A pool of four devices with two queues."""
    await pool.joined("a", 4)
    await change(pool, BEFORE)
    return pool


async def change(pool, source: str) -> tuple[str, ...]:
    """Apply a policy, and what that means; a check before has said the same."""
    checked = check_policy(pool.service.books, source, pool.time.wall.timestamp())
    command = ChangePolicy(source=source, by=UserName("root"))
    applied = await pool.service.execute(partial(change_policy, command=command))
    assert (applied.is_new, checked.refusals, checked.effects) == (True, (), applied.effects)
    return applied.effects


async def test_claims_of_a_gone_queue_stay_and_stand_elsewhere(teams):
    """Where their owners' claims go now; who waits is served there."""
    running, waiting = await teams.claim(4), await teams.claim(2, user="bob")
    assert await change(teams, NO_VISION) == (
        "Queue vision is gone and has 2 open claims, kept in queue others from now on.",
    )
    assert teams.now(running).phase is Phase.STARTING
    [agent] = teams.agents.values()
    await teams.come_up(agent)
    await teams.release(running)
    await teams.wind_down(agent)
    assert teams.now(waiting).phase is Phase.STARTING
    with pytest.raises(PoolError, match="vision"):
        await teams.claim(queue="vision")


async def test_claims_of_users_without_any_queue_come_after_all_others(teams):
    """They keep what they hold; a younger claim of somebody with a queue is served first."""
    running, waiting = await teams.claim(4), await teams.claim(4, user="bob")
    nobody = f'[queues.others]\nusers = ["eve"]\n[priorities.exam]\nrank = 300\n{KEEP}'
    [told] = await change(teams, nobody)
    assert told == (
        "Queue vision is gone and has 2 open claims, kept without a share, behind everybody"
        " else, where their owners belong to no queue."
    )
    younger = await teams.claim(4, user="eve")
    for serving, served in ((running, younger), (younger, waiting)):
        assert teams.now(serving).phase is Phase.STARTING
        [agent] = teams.agents.values()
        await teams.come_up(agent)
        await teams.release(serving)
        await teams.wind_down(agent)
        assert teams.now(served).phase is Phase.STARTING


async def test_claims_of_users_who_may_claim_there_no_more_stay(teams):
    """New ones are refused, and it is told once."""
    first = await teams.claim(1, user="bob")
    without = BEFORE.replace('"ann", "bob"', '"ann"')
    [told] = await change(teams, without)
    assert told == (
        "Queue vision has 1 open claim of users who may not claim there any more (bob); it"
        " stays, new ones are refused."
    )
    assert teams.now(first).phase is Phase.STARTING
    with pytest.raises(NotAllowed):
        await teams.claim(1, user="bob", queue="vision")
    assert await change(teams, f"{without}# again") == ()


async def test_limit_below_what_is_held_takes_nothing_by_itself(teams):
    """It gives no more, and a limit that was exceeded before is no news."""
    first = await teams.claim(3, user="bob")
    limited = BEFORE.replace("[queues.vision]", "[queues.vision]\nlimit = { gpus = 2 }")
    [told] = await change(teams, limited)
    assert told == (
        "Queue vision holds 3 GPUs, above its limit of 2 GPUs; nothing is taken for that alone,"
        " and it gets no more until it holds less."
    )
    second = await teams.claim(1)
    assert (teams.now(first).phase, teams.now(second).phase) == (Phase.STARTING, Phase.PENDING)
    assert await change(teams, f"{limited}# again") == ()


@pytest.mark.parametrize("terms", ["gpus = 2", "claims = 1"])
async def test_users_over_their_own_limits_keep_what_they_have(teams, terms):
    """Nothing is taken for that alone; who is within them is not named."""
    claims = [await teams.claim(1), *[await teams.claim(n, user="bob") for n in (1, 2)]]
    limited = BEFORE.replace("[queues.vision]", f"[queues.vision]\nper_user = {{ {terms} }}")
    [told] = await change(teams, limited)
    assert told.startswith("Queue vision has users with more than each may have from now on (bob);")
    assert {teams.now(claim).phase for claim in claims} == {Phase.STARTING}
    assert await change(teams, f"{limited}# again") == ()


async def test_raised_limit_starts_who_waited_for_it_at_once(teams):
    """A pass by the new rules follows in the same batch."""
    limited = BEFORE.replace("[queues.vision]", "[queues.vision]\nlimit = { gpus = 1 }")
    await change(teams, limited)
    waiting = await teams.claim(2)
    assert teams.now(waiting).phase is Phase.PENDING
    await change(teams, BEFORE)
    assert teams.now(waiting).phase is Phase.STARTING


async def test_what_else_would_surprise_is_told(teams):
    """A class that is gone, a reservation for a queue that is gone, and that taking back begins."""
    await teams.claim(1, user="bob", priority="exam")
    now = teams.time.wall
    admin = teams.user("root", Role.ADMIN)
    booking = ReserveDevices(
        caller=admin,
        queue="vision",
        devices=1,
        begins=now + timedelta(hours=1),
        ends=now + timedelta(hours=2),
    )
    made = await teams.service.execute(partial(reserve, command=booking))
    gone, ranks, void, reclaims = await change(teams, '[queues.others]\nusers = ["*"]\n')
    assert gone.startswith("Queue vision is gone and has 1 open claim, kept in queue others")
    assert ranks.startswith("1 open claim has the priority exam, which is gone, and will rank last")
    assert void.startswith(f"Reservation {made} of 1 device is for queue vision, which is gone:")
    assert reclaims.startswith("What queues hold beyond their share can be taken back from now on")


async def test_reservation_that_fits_no_more_is_told(teams):
    """Guarantees were raised beside it, as far as the pool goes."""
    now, admin = teams.time.wall, teams.user("root", Role.ADMIN)
    times = {"begins": now + timedelta(hours=1), "ends": now + timedelta(hours=2)}
    booking = ReserveDevices(caller=admin, queue="others", devices=2, **times)
    made = await teams.service.execute(partial(reserve, command=booking))
    guaranteed = BEFORE.replace("[queues.vision]", "[queues.vision]\nguarantee = { gpus = 3 }")
    [told] = await change(teams, guaranteed)
    assert told == (
        f"Reservation {made} of 2 devices for queue others is more than the guarantees leave: it"
        " may not get all of them."
    )
    teams.time.pass_s(2 * 3600)
    await change(teams, BEFORE)
    assert await change(teams, guaranteed) == ()


async def test_claim_that_is_over_is_no_news(teams):
    """Only open claims are told of."""
    await teams.release(await teams.claim(1))
    assert await change(teams, NO_VISION) == ()


RULE = """
[[idle.rules]]
name = "all"
after = "20min"
"""


async def test_claims_that_come_under_another_rule_are_named(teams):
    """With what it does; who waits has nothing yet that could be idle."""
    held = await teams.claim(2)
    await teams.claim(4, user="bob")
    who = f"1 claim with devices (ann/{held.name})"
    await change(teams, BEFORE + RULE)
    shorter = RULE.replace("20min", "10min") + 'action = "release"\n'
    assert await change(teams, BEFORE + shorter) == (
        f'Rule "all" changes for {who}: hibernate after 20 min becomes release after 10 min.',
    )
    assert await change(teams, BEFORE + shorter + "only_when_wanted = true\n") == (
        f'Rule "all" changes for {who}; release after 10 min stays.',
    )
    vision = RULE.replace('"all"', '"vision"') + 'match = { queues = ["vision"] }\n'
    (said,) = await change(teams, BEFORE + vision)
    assert said == (
        f'Rule "vision" (hibernate after 20 min) is for {who} from now on, in place of "all"'
        " (release after 10 min)."
    )
    assert await change(teams, BEFORE + vision.replace('["vision"]', '["others"]')) == (
        f"No rule on idle claims is for {who} any more.",
    )
    assert await change(teams, BEFORE + vision) == (
        f'Rule "vision" (hibernate after 20 min) is for {who} from now on; none was before.',
    )


async def test_rule_that_asks_what_nobody_can_tell_is_told(pool):
    """MIG instances have no utilisation: what is unknown is never idle."""
    agent = an_agent("a", 3)
    whole, *parts = agent.devices
    instances = (
        replace(each, parent="GPU-9", model="A100 MIG 1g", simulated=False) for each in parts
    )
    agent.devices = (replace(whole, model="A100", simulated=False), *instances)
    await pool.join(agent)
    await change(pool, BEFORE + RULE.replace("after", 'match = { models = ["H100"] }\nafter'))
    (said,) = await change(pool, BEFORE + RULE)
    assert said == (
        'Rule "all" asks how much a GPU computes, which nobody can tell of 2 devices (A100 MIG 1g):'
        " claims on them are never idle by it; give those models a rule of their own, whose signals"
        ' leave "gpu" out.'
    )
    own = 'match = { models = ["mig"] }\nsignals = ["tasks", "calls", "kernel"]\n'
    assert await change(pool, BEFORE + RULE.replace('"all"', '"parts"') + own + RULE) == ()


SERVICE = 'surplus_order = "least_attained_service"\n'


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('moves = "done"\n', "Claims can be hibernated and resumed on other devices so that"),
        ('moves = "proposed"\n', None),
        ("reclaim = true\n", "What queues hold beyond their share can be taken back from now on"),
        (
            f"reclaim = true\n{SERVICE}",
            "Claims that have held devices for longer can be hibernated",
        ),
        (f"reclaim = false\n{SERVICE}", None),
    ],
)
async def test_what_may_be_taken_from_now_on_is_told(pool, more, told):
    """Where anybody holds anything."""
    await pool.joined("a", 2)
    users = '[queues.others]\nusers = ["*"]\n[scheduling]\n'
    await change(pool, f"{users}reclaim = false\n")
    await pool.claim()
    after = more if "reclaim" in more else f"reclaim = false\n{more}"
    effects = await change(pool, f"{users}{after}# other\n")
    assert [each.startswith(told or "-") for each in effects] == [True] * (told is not None)
