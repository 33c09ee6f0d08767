"""Parts of devices over HTTP: asked for, shown to those who may see them, and foretold."""

import pytest

_ONE = {"workers": {"min": 1, "max": 1}}
_HALF = _ONE | {"gpus_per_worker": 0.5}
_IN_BYTES = _ONE | {"gpu_memory": "4GiB"}


async def test_part_is_shown_as_what_it_came_to(site):
    """A share, whether it was told so or in bytes."""
    await site.host(devices=1)
    async with await site.client() as client:
        views = [
            (await client.post("/api/v1/claims", json=body)).json() for body in (_HALF, _IN_BYTES)
        ]
    assert [view["leases"][0]["share"] for view in views] == [0.5, 0.25]
    assert [view["gpus_per_worker"] for view in views] == [0.5, 0.25]
    assert [view["gpu_memory"] for view in views] == [None, 4 * 2**30]


async def test_worker_with_several_devices_shows_them(site):
    """One lease, and the devices are all its claim's."""
    await site.host(devices=2)
    async with await site.client() as client:
        view = (await client.post("/api/v1/claims", json=_ONE | {"gpus_per_worker": 2})).json()
        devices = (await client.get("/api/v1/devices")).json()
    [lease] = view["leases"]
    assert set(lease["devices"]) == {device["uuid"] for device in devices}
    assert {device["claim"] for device in devices} == {view["id"]}


async def test_stranger_sees_how_much_is_held_and_not_by_whom(site):
    """As of whole devices."""
    await site.host(devices=1)
    async with await site.client("ann") as ann, await site.client("bob") as bob:
        mine = (await ann.post("/api/v1/claims", json=_HALF)).json()["id"]
        await ann.post("/api/v1/claims", json=_IN_BYTES)
        [seen] = (await ann.get("/api/v1/devices")).json()
        [theirs] = (await bob.get("/api/v1/devices")).json()
    assert seen["holders"][0] == {"claim": mine, "owner": "ann", "share": 0.5}
    assert theirs["holders"] == [
        {"claim": None, "owner": None, "share": 0.5},
        {"claim": None, "owner": None, "share": 0.25},
    ]
    assert (theirs["leased"], theirs["left"], theirs["free"]) == (True, 0.25, False)


async def test_estimates_know_of_parts(site):
    """What fits beside others' parts, what does not, and what never will."""
    await site.host(devices=1)
    async with await site.client() as client:

        async def told(body):
            return (await client.post("/api/v1/estimates", json=body)).json()

        assert (await told(_HALF))["now"]
        await client.post("/api/v1/claims", json=_ONE | {"gpus_per_worker": 0.6})
        assert not (await told(_HALF))["now"]
        assert (await told(_IN_BYTES))["now"]
        never = await told(_ONE | {"gpu_memory": "1TiB"})
    assert never["never"]
    assert "The largest such device is Sim 16 with 16 GiB." in never["reason"]


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"gpus_per_worker": 0}, "gpus_per_worker"),
        ({"gpus_per_worker": -0.5}, "gpus_per_worker"),
        ({"gpus_per_worker": 1.5}, "gpus_per_worker"),
        ({"gpus_per_worker": 17}, "gpus_per_worker"),
        ({"gpus_per_worker": 0.0001}, "gpus_per_worker"),
        ({"gpus_per_worker": 2, "gpu_memory": "1GiB"}, "gpu_memory"),
        ({"gpu_memory": "0"}, "gpu_memory"),
        ({"min_gpu_memory": "much"}, "min_gpu_memory"),
        ({"gpu_memory": "1GiB", "rmm_pool_size": "2GiB"}, "rmm_pool_size"),
        ({"gpus_per_worker": 0.5, "rmm_maximum_pool_size": "9GiB"}, "rmm_maximum_pool_size"),
    ],
)
async def test_nonsense_is_a_problem_that_names_its_field(site, terms, field):
    """In one sentence, for claims and for estimates."""
    await site.host(devices=1)
    async with await site.client() as client:
        for path in ("claims", "estimates"):
            answer = await client.post(f"/api/v1/{path}", json=_ONE | terms)
            problem = answer.json()
            assert (answer.status_code // 100, problem["field"]) == (4, field), problem
            assert problem["detail"].count("\n") == 0
