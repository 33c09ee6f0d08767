"""Rules on idle claims over HTTP: what is explained, and how long a claim may be kept."""

from datetime import timedelta
from functools import partial

import pytest

from jupyter_gpupool.manager.service.arrows import take
from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.pool.claim_events import Warned
from jupyter_gpupool.pool.ids import UserName

POLICY = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "all"
action = "release"
keep_alive = { longest = "1h", per_day = "90min", reason = true }
"""


@pytest.fixture
async def running(site):
    """A client of the owner of a claim that runs under the policy, and the claim's path."""
    command = ApplyPolicy(source=POLICY, by=UserName("root"))
    await site.parts.service.execute(partial(apply_policy, command=command))
    agent = await site.host()
    async with await site.client() as client:
        made = await client.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        await site.come_up(agent)
        yield client, f"/api/v1/claims/{made.json()['id']}"


async def test_explanation_names_the_rule_and_its_times(running):
    """So that nobody has to read the policy for that."""
    client, path = running
    lines = (await client.get(f"{path}/explanation")).json()["lines"]
    assert (
        'By rule "all" it is warned after 15 min and ends after 20 min of idleness.'
        " It is not known to be idle now." in lines
    )


async def test_kernel_that_is_busy_clears_a_warning_soon(running, site, monkeypatch):
    """The claim's host is asked at once, for its next report may be seconds away."""
    client, path = running
    claim_id, service = path.rpartition("/")[2], site.parts.service
    kernel = {"host": "h", "boot_id": "b", "pid": 4711, "started": 99}
    await client.put(f"{path}/kernels/k-1", json=kernel)
    warned = Warned(reason="Idle.", rule="all", after=timedelta(minutes=5))
    await service.execute(lambda unit: take(unit, claim_id, warned) and None)
    asked = []
    monkeypatch.setattr(service.links, "look", asked.append)
    busy = {"kernels": [{"kernel": "k-1", "state": "busy"}]}
    await client.post("/api/v1/kernels/activity", json=busy)
    assert asked == ["a"]


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"for_s": 7200, "reason": "lunch"}, "for_s", "for 1 h at a time"),
        ({"for_s": 600}, "reason", "asks why"),
    ],
)
async def test_keep_beyond_the_rule_is_refused_in_one_sentence(running, body, field, said):
    """With what is allowed, and nothing changes."""
    client, path = running
    refused = (await client.post(f"{path}/keep_alive", json=body)).json()
    assert (refused["status"], refused["field"]) == (422, field)
    assert said in refused["detail"]
    assert (await client.get(path)).json()["kept_until"] is None


async def test_keep_takes_the_place_of_the_one_before(running):
    """Which counts no more for the day; each is an event with its user's reason."""
    client, path = running
    for hours in (1.0, 0.75):
        body = {"for_s": 3600 * hours, "reason": "it reads"}
        answer = (await client.post(f"{path}/keep_alive", json=body)).json()
    assert answer["kept_until"] is not None
    claim = path.rpartition("/")[2]
    events = (await client.get("/api/v1/events", params={"claim": claim})).json()
    kept = [event["reason"] for event in events if event["kind"] == "claim.kept"]
    assert kept[0] == "Kept for 1 h: it reads"


BOUNDED = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "large"
match = { gpus = { min = 2 } }
after = "20min"
[[idle.rules]]
name = "all"
choice = { actions = ["release"], after = ["10min", "12h"] }
"""


async def test_wish_that_the_rule_of_a_claim_bounds_is_answered_so(site):
    """One rule of the policy grants it, and another one is for this claim."""
    command = ApplyPolicy(source=BOUNDED, by=UserName("root"))
    await site.parts.service.execute(partial(apply_policy, command=command))
    await site.host()
    body = {"on_idle": "release", "idle_after_s": 8 * 3600}
    async with await site.client() as client:
        small, large = [
            (await client.post("/api/v1/claims", json=body | {"workers": workers})).json()
            for workers in ({"min": 1, "max": 1}, {"min": 2, "max": 2})
        ]
    assert small["own_wish"] == ""
    assert large["own_wish"].endswith('rule "large" of the policy makes it hibernate after 20 min.')
