"""Reservations over HTTP: who may book, what is refused, what stays."""

from datetime import datetime, timedelta
from functools import partial

import pytest

from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

_URL = "/api/v1/reservations"
_POLICY = """
[queues.school]
leads = ["head"]
guarantee = { gpus = 1 }
[queues.class]
parent = "school"
leads = ["teacher"]
users = ["ann"]
[queues.others]
users = ["*"]
"""


@pytest.fixture
async def school(site):
    """A site of four devices, one of them guaranteed, with leads of two queues."""
    await site.host(devices=4)
    command = ApplyPolicy(source=_POLICY, by=UserName("root"))
    await site.parts.service.execute(partial(apply_policy, command=command))
    return site


def window(site, devices: int = 2, queue: str = "class", begins_h: float = 1, **more) -> dict:
    """Two hours, from so many hours on."""
    begins = site.parts.service.clock.now() + timedelta(hours=begins_h)
    times = {"begins": begins.isoformat(), "ends": (begins + timedelta(hours=2)).isoformat()}
    return {"queue": queue, "devices": devices, **times, **more}


@pytest.mark.parametrize(
    ("user", "queue", "status"),
    [
        ("teacher", "class", 201),
        ("head", "class", 201),
        ("head", "school", 201),
        ("teacher", "school", 403),
        ("teacher", "others", 403),
        ("ann", "class", 403),
    ],
)
async def test_leads_book_for_their_queue_and_those_below(school, user, queue, status):
    """A member of the queue is no lead of it."""
    async with await school.client(user) as client:
        answer = await client.post(_URL, json=window(school, queue=queue))
    assert answer.status_code == status


async def test_reservation_is_seen_by_all_and_given_up_by_few(school):
    """Whoever may lose devices to it may know of it."""
    async with await school.client("root", Role.ADMIN) as root, await school.client("bob") as bob:
        made = (await root.post(_URL, json=window(school, note="exam"))).json()
        seen = (await bob.get(_URL)).json()
        refused = await bob.delete(f"{_URL}/{made['id']}")
        gone = [(await root.delete(f"{_URL}/{made['id']}")).status_code for _ in range(2)]
        after = (await bob.get(_URL)).json()
    assert (seen, refused.status_code, gone, after) == ([made], 403, [204, 404], [])
    assert (made["by"], made["note"], made["is_open"], made["held"]) == ("root", "exam", False, 0)


async def test_more_than_the_pool_has_is_refused_with_numbers(school):
    """One of four is guaranteed, two are booked at that time."""
    async with await school.client("root", Role.ADMIN) as root:
        await root.post(_URL, json=window(school, 2))
        answer = await root.post(_URL, json=window(school, 2, begins_h=2))
        later = await root.post(_URL, json=window(school, 3, begins_h=3.01))
    told = answer.json()
    assert (answer.status_code, told["field"], later.status_code) == (422, "devices", 201)
    assert "of 4 in the pool guarantees take 1 and other reservations 2" in told["detail"]
    assert told["hint"] == "At most 1 can be reserved in that window."


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"queue": "nowhere"}, "queue"),
        ({"devices": 0}, "devices"),
        ({"devices": 1.5}, "devices"),
        ({"begins": "2100-01-05T10:00:00"}, "begins"),
        ({"begins": "2100-01-05T10:00:00Z"}, "ends"),
        ({"begins": "2000-01-05T10:00:00Z", "ends": "2000-01-05T12:00:00Z"}, "ends"),
        ({"ends": "9999-12-31T23:59:59-12:00"}, "ends"),
        ({"begins": "0001-01-01T00:00:00+14:00", "ends": "0001-01-01T00:00:01+14:00"}, "ends"),
        ({"until": "12:00"}, "until"),
    ],
)
async def test_nonsense_is_refused_by_the_name_of_its_field(school, changes, field):
    """A time without its offset, a window that is over, or that ends before it begins."""
    async with await school.client("root", Role.ADMIN) as root:
        answer = await root.post(_URL, json=window(school) | changes)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_window_that_began_already_begins_now(school):
    """However long ago it was said to."""
    past = {"begins": "0001-01-01T00:00:00+14:00"}
    now = school.parts.service.clock.now()
    async with await school.client("root", Role.ADMIN) as root:
        made = (await root.post(_URL, json=window(school) | past)).json()
    assert made["is_open"]
    assert datetime.fromisoformat(made["begins"]) >= now


async def test_repeated_request_books_once(school):
    """The same key gets the same reservation."""
    key, body = {"Idempotency-Key": "once"}, window(school)
    async with await school.client("root", Role.ADMIN) as root:
        made = [(await root.post(_URL, json=body, headers=key)).json() for _ in range(2)]
        booked = (await root.get(_URL)).json()
    assert (made[0], booked) == (made[1], [made[0]])


async def test_reservation_outlives_a_restart(school):
    """And one that was given up does not."""
    async with await school.client("root", Role.ADMIN) as root:
        kept, gone = [(await root.post(_URL, json=window(school, 1))).json() for _ in range(2)]
        await root.delete(f"{_URL}/{gone['id']}")
    found = school.parts.service.store.load()
    assert [each.id for each in found.reservations] == [kept["id"]]
    assert found.reservations[0] == school.parts.service.books.reservations[kept["id"]]
