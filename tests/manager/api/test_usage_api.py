"""The report on usage: who sees what, by what, and in whose days."""

import pytest

from jupyter_gpupool.protocol.api import Role

_URL = "/api/v1/usage"
_LED = """
[queues.vision]
users = ["*"]
leads = ["lea"]
"""


@pytest.fixture
async def used(site):
    """Ann has held a device of queue vision for two hours and more."""
    agent = await site.host(devices=1)
    async with await site.client("root", Role.ADMIN) as root:
        await root.post("/api/v1/policy/apply", json={"source": _LED})
    async with await site.client("ann") as ann:
        await ann.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
    await site.come_up(agent)
    return site


async def rows_of(site, user, role=Role.USER, **params):
    """What somebody is shown."""
    async with await site.client(user, role) as client:
        answer = await client.get(_URL, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


async def test_users_see_their_own(used):
    """By user, queue and day, as they wish."""
    [row] = await rows_of(used, "ann", by=["user", "queue", "day"])
    assert (row["user"], row["queue"]) == ("ann", "vision")
    assert row["day"] is not None
    [row] = await rows_of(used, "ann", by=["queue"])
    assert (row["user"], row["day"]) == (None, None)


async def test_stranger_sees_nothing(used):
    """Not even that somebody holds something."""
    assert await rows_of(used, "bob") == []


async def test_leads_and_admins_see_everybodys(used):
    """A lead those of their queues."""
    for user, role in (("lea", Role.USER), ("root", Role.ADMIN)):
        assert [row["user"] for row in await rows_of(used, user, role)] == ["ann"]


async def test_days_are_those_of_the_zone(used):
    """The last so many days end today, there."""
    async with await used.client("ann") as ann:
        told = (await ann.get(_URL, params={"days": 2, "zone": "Pacific/Kiritimati"})).json()
    assert told["zone"] == "Pacific/Kiritimati"
    assert told["since"].endswith("T00:00:00+14:00")


@pytest.mark.parametrize(
    "params",
    [{"zone": "Mars/Olympus"}, {"zone": "../etc"}, {"days": 0}, {"days": 100000}, {"by": "host"}],
    ids=str,
)
async def test_what_makes_no_sense_is_refused(used, params):
    """By a problem that names it, not a traceback."""
    async with await used.client("ann") as ann:
        answer = await ann.get(_URL, params=params)
    assert answer.status_code in (400, 422)
