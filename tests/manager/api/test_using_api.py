"""Kernels, keeps and explanations over HTTP, on a real database."""

import pytest

from jupyter_gpupool.pool.device import DeviceProcess, DeviceState, Health
from jupyter_gpupool.protocol.api import Role

_TWO = {"workers": {"min": 1, "max": 2}, "environment": "science"}
_KERNEL = {"host": "h", "boot_id": "b", "pid": 4711, "started": 99, "name": "a.ipynb"}


async def _claim(client, **terms) -> str:
    made = await client.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}} | terms)
    return f"/api/v1/claims/{made.json()['id']}"


async def test_claim_shows_who_uses_it_and_what_they_do(site):
    """From attaching over a server's report to detaching."""
    async with await site.client() as client:
        path = await _claim(client)
        attached = (await client.put(f"{path}/kernels/k-1", json=_KERNEL)).json()
        told = {"kernels": [{"kernel": "k-1", "state": "idle", "quiet_for_s": 60}]}
        assert (await client.post("/api/v1/kernels/activity", json=told)).status_code == 204
        [seen] = (await client.get(path)).json()["kernels"]
        gone = [await client.delete(f"{path}/kernels/k-1") for _ in range(2)]
        after = (await client.get(path)).json()
    assert [kernel["state"] for kernel in attached["kernels"]] == ["unknown"]
    assert (seen["state"], seen["pid"], seen["name"]) == ("idle", 4711, "a.ipynb")
    assert seen["quiet_since"] < seen["reported_at"]
    assert ([answer.status_code for answer in gone], after["kernels"]) == ([204, 204], [])


async def test_kernel_that_died_is_gone_for_good(site):
    """Its server says so once; another process by its name is another one."""
    async with await site.client() as client:
        path = await _claim(client)
        await client.put(f"{path}/kernels/k-1", json=_KERNEL)
        dead = {"kernels": [{"kernel": "k-1", "state": "dead"}]}
        await client.post("/api/v1/kernels/activity", json=dead)
        [record] = site.parts.service.store.load().claims
        after = (await client.put(f"{path}/kernels/k-1", json=_KERNEL | {"pid": 5})).json()
    assert record.claim.kernels[0].gone_since is not None
    assert [kernel["state"] for kernel in after["kernels"]] == ["unknown"]


async def test_use_of_a_claim_survives_a_restart(site):
    """Its kernels and its keep are durable; what a kernel does has to be told again."""
    agent = await site.host()
    async with await site.client() as client:
        path = await _claim(client)
        await site.come_up(agent)
        await client.put(f"{path}/kernels/k-1", json=_KERNEL)
        view = (await client.post(f"{path}/keep_alive", json={"for_s": 600})).json()
    [record] = site.parts.service.store.load().claims
    assert record == site.parts.service.books.claims[record.claim.id]
    assert [kernel.id for kernel in record.claim.kernels] == ["k-1"]
    assert view["kept_until"] is not None


async def test_keep_that_is_over_is_not_shown(site):
    """Nothing to read into."""
    agent = await site.host()
    async with await site.client() as client:
        path = await _claim(client)
        await site.come_up(agent)
        view = (await client.post(f"{path}/keep_alive", json={"for_s": 1e-6})).json()
    assert (view["kept_until"], view["reason"]) == (None, "Kept for 0 s.")


async def test_claim_shows_its_environment(site):
    """As it was asked for."""
    async with await site.client() as client:
        path = await _claim(client, environment="science")
        assert (await client.get(path)).json()["environment"] == "science"


async def test_ended_claim_takes_nothing_more(site):
    """But letting go of it is no error, however long ago it ended."""
    async with await site.client() as client:
        path = await _claim(client)
        await client.post(f"{path}/release", json={})
        del site.parts.service.books.claims[path.rpartition("/")[2]]
        refused = [
            await client.put(f"{path}/kernels/k-1", json=_KERNEL),
            await client.post(f"{path}/keep_alive", json={"for_s": 60}),
        ]
        gone = await client.delete(f"{path}/kernels/k-1")
        told = (await client.get(f"{path}/explanation")).json()
    assert ([answer.status_code for answer in refused], gone.status_code) == ([409, 409], 204)
    assert told["lines"][0].endswith("ago (cancelled): Cancelled.")


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PUT", "kernels/" + "x" * 201, _KERNEL, "kernel"),
        ("PUT", "kernels/a%0Ab", _KERNEL, "kernel"),
        ("PUT", "kernels/k", _KERNEL | {"pid": 0}, "pid"),
        ("PUT", "kernels/k", _KERNEL | {"pid": 2**31}, "pid"),
        ("PUT", "kernels/k", _KERNEL | {"started": 10**4000}, "started"),
        ("PUT", "kernels/k", _KERNEL | {"name": "\x1b[2J"}, "name"),
        ("PUT", "kernels/k", {}, "host"),
        ("POST", "keep_alive", {"for_s": -1}, "for_s"),
        ("POST", "keep_alive", {"for_s": 7201}, "for_s"),
        ("POST", "keep_alive", {"for_s": 60, "reason": "a\nb"}, "reason"),
        ("GET", "logs?lines=0", None, "lines"),
        ("GET", "logs?lines=1001", None, "lines"),
        ("GET", "logs?process=" + "x" * 201, None, "process"),
    ],
)
async def test_nonsense_is_refused_by_the_name_of_its_field(site, method, path, body, field):
    """And nothing is kept."""
    agent = await site.host()
    async with await site.client() as client:
        claim = await _claim(client)
        await site.come_up(agent)
        answer = await client.request(method, f"{claim}/{path}", json=body)
        view = (await client.get(claim)).json()
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (view["kernels"], view["kept_until"]) == ([], None)


@pytest.mark.parametrize(
    "told",
    [{"kernel": "k", "state": "sleepy"}, {"kernel": "k", "state": "idle", "quiet_for_s": -1}],
)
async def test_activity_that_makes_no_sense_is_refused(site, told):
    """By the place of what is wrong."""
    async with await site.client() as client:
        answer = await client.post("/api/v1/kernels/activity", json={"kernels": [told]})
    assert (answer.status_code, answer.json()["field"].split(".")[0]) == (422, "kernels")


async def test_activity_is_no_use_of_the_pool(site):
    """A Jupyter server that tells of its kernels keeps no embedded pool from ending."""
    told = {"kernels": [{"kernel": "k", "state": "idle", "quiet_for_s": 5}]}
    async with await site.client() as client:
        await client.get("/api/v1/claims")
        asked_s = site.parts.asked_s
        await client.post("/api/v1/kernels/activity", json=told)
        assert site.parts.asked_s == asked_s
        await client.get("/api/v1/claims")
    assert site.parts.asked_s > asked_s


async def test_repeated_keep_does_nothing_new(site):
    """The same key gets the same end."""
    agent, key = await site.host(), {"Idempotency-Key": "a key"}
    async with await site.client() as client:
        path = await _claim(client)
        await site.come_up(agent)
        asks = [
            await client.post(f"{path}/keep_alive", json={"for_s": 60}, headers=key)
            for _ in range(2)
        ]
    assert len({answer.json()["kept_until"] for answer in asks}) == 1


async def test_waiting_claim_is_explained_as_it_was_decided(site):
    """The same reason as in the claim itself, with the counts behind it."""
    agent = site.agent("a", 3)
    uuids = [device.uuid for device in agent.devices]
    agent.states = {
        uuids[1]: DeviceState(held_elsewhere=True, foreign=(DeviceProcess(pid=1, memory_bytes=1),)),
        uuids[2]: DeviceState(health=Health.QUARANTINED, problem="ECC."),
    }
    await site.say(agent, joins=True)
    async with await site.client() as client:
        await _claim(client)
        path = await _claim(client, name="mine")
        told, view = (await client.get(f"{path}/explanation")), (await client.get(path))
    told, view = told.json(), view.json()
    assert (told["place"], told["ahead"], told["free"], told["devices"]) == (1, 0, 0, 3)
    assert told["reason"] == view["wait"]["reason"]
    assert told["reason"] == (
        "Waiting for 1 of 1 device; 1 held by another pool on the host, 1 quarantined."
    )
    assert "3 devices of the pool would do: 0 free, 1 held by other claims," in told["lines"][1]


async def test_reader_is_told_what_their_own_claims_hold(site):
    """Theirs and nobody else's: an admin who reads the same is told of their own."""
    await site.host(devices=2)
    async with await site.client() as client, await site.client("root", Role.ADMIN) as admin:
        await _claim(client, name="old")
        await _claim(admin, name="roots")
        path = await _claim(client, name="new")
        told = [(await who.get(f"{path}/explanation")).json() for who in (client, admin)]
    assert told[0]["lines"][2] == "1 of 2 held by your claim old."
    assert told[1]["lines"][2] == "1 of 2 held by your claim roots."


async def test_claim_that_can_never_start_is_told_what_there_is(site):
    """Whoever misspells a model sees it at once."""
    await site.host()
    async with await site.client() as client:
        path = await _claim(client, model="h1000")
        told = (await client.get(f"{path}/explanation")).json()
    assert (told["never"], told["place"], told["devices"]) == (True, None, 0)
    assert told["lines"][0] == (
        "Not possible as the pool is: 1 h1000 device wanted, 0 joined. The pool's models: Sim 16."
        " It starts when a host brings more."
    )
    assert told["lines"][1] == ("No device of the pool would do; it has 2 × Sim 16 with 16 GiB.")


async def test_running_claim_says_why_it_has_no_more(site):
    """What it has, what it lacks, when it ends."""
    agent = await site.host(devices=1)
    async with await site.client() as client:
        path = await _claim(client, workers={"min": 1, "max": 3}, time_limit_s=3600)
        await site.come_up(agent)
        await client.put(f"{path}/kernels/k-1", json=_KERNEL)
        told = (await client.get(f"{path}/explanation")).json()
    assert (told["phase"], told["place"]) == ("running", None)
    first, *others, last = told["lines"]
    assert first.endswith("with 1 of up to 3 workers.")
    assert others == [
        "It would take 2 more. Waiting for 2 of 2 devices.",
        "1 device of the pool would do: 1 its own, 0 free.",
        "What its kernel a.ipynb does is not known.",
    ]
    assert last.startswith("It ends by itself in ")
