"""Demand over HTTP: hosts that would start claims, hosts that may go."""

from datetime import timedelta

from jupyter_gpupool.manager.service.demand import KEEP_S, offers_like
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape

_URL = "/api/v1/demand"


async def test_claims_that_wait_ask_for_hosts_like_those_there_are(site):
    """Five devices more are three hosts of two, for these claims."""
    agent = await site.host(devices=2)
    async with await site.client() as ann, await site.client("root", Role.ADMIN) as root:
        ids = []
        for workers in (2, 4, 1):
            bounds = {"workers": {"min": workers, "max": workers}}
            ids.append((await ann.post("/api/v1/claims", json=bounds)).json()["id"])
            await site.come_up(agent)
        told = (await root.get(_URL)).json()
    [wanted] = told["wanted"]
    assert (wanted["shape"], wanted["count"], wanted["devices"]) == (
        "2 × Sim 16 with 16 GiB",
        3,
        2,
    )
    assert (set(wanted["claims"]), told["may_go"]) == (set(ids[1:]), [])


async def test_host_empty_for_its_keep_time_may_go(site):
    """And not before, nor one that is used."""
    await site.host("a", devices=1)
    await site.host("b", devices=1)
    async with await site.client() as ann, await site.client("root", Role.ADMIN) as root:
        await ann.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        young = (await root.get(_URL)).json()
        since_s = site.parts.service.emptiness.since_s
        used = {lease.host_id for lease in site.parts.service.books.leases.values()}
        since_s.update({host_id: seconds - KEEP_S - 1 for host_id, seconds in since_s.items()})
        told = (await root.get(_URL)).json()
    assert (young["may_go"], told["wanted"]) == ([], [])
    assert [host["id"] for host in told["may_go"]] == sorted({"a", "b"} - used)


async def test_emptiness_begins_with_the_last_lease(pool):
    """A host that was used and is no more is empty since then."""
    agent = await pool.joined("a", 1)
    since_s, joined_s = pool.service.emptiness.since_s, pool.time.wall.timestamp()
    assert since_s == {"a": joined_s}
    claim = await pool.claim(1)
    assert since_s == {}
    pool.time.wall += timedelta(minutes=5)
    await pool.release(claim)
    await pool.wind_down(agent)
    assert since_s == {"a": joined_s + 300}
    await pool.lost(agent)
    assert since_s == {}


def test_hosts_alike_are_one_offer():
    """Whatever their names, racks and what runs on them; others are others."""

    def host(name: str, *models: str, rack: str) -> HostShape:
        devices = tuple(DeviceView(f"{name}{n}", m, 2**34) for n, m in enumerate(models))
        return HostShape(name, devices, labels=frozenset({f"rack={rack}", "fast"}))

    hosts = [host("a", "A", "B", rack="1"), host("b", "B", "A", rack="2"), host("c", "A", rack="1")]
    assert [offer.name for offer in offers_like(hosts)] == [
        "1 × A with 16 GiB",
        "1 × A with 16 GiB, 1 × B with 16 GiB",
    ]
