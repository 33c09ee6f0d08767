"""The environments of a pool over HTTP, and a kernel that says what it is."""

import pytest

from jupyter_gpupool.protocol.link import EnvironmentReport

PLAIN = EnvironmentReport(name="default", versions={"python": "3.11.7"}, is_warm=True)
BARE = EnvironmentReport(name="bare", problem="it lacks dask_cuda")


@pytest.fixture
async def offering_site(site):
    """A host with a second environment that lacks something, and one that runs kernels' own."""
    first, second = site.agent("a", 2), site.agent("b", 2)
    first.environments = (EnvironmentReport(name="default"), BARE)
    second.environments, second.runs_kernels = (PLAIN,), True
    for agent in (first, second):
        await site.say(agent, joins=True)
    return site


async def test_environments_are_listed_with_who_offers_them(offering_site):
    """The default comes first and the kernel's own last; what is known anywhere is shown."""
    async with await offering_site.client() as client:
        default, bare, own = (await client.get("/api/v1/environments")).json()
    assert default == {
        "name": "default",
        "hosts": ["a", "b"],
        "is_default": True,
        "versions": {"python": "3.11.7"},
        "problem": "",
    }
    assert (bare["name"], bare["problem"]) == ("bare", "it lacks dask_cuda")
    assert (own["name"], own["hosts"]) == ("kernel", ["b"])


async def test_environment_that_cannot_be_used_is_a_conflict(offering_site):
    """Told as a problem, with what has to be installed."""
    body = {"workers": {"min": 1, "max": 1}, "environment": "bare"}
    async with await offering_site.client() as client:
        refused = await client.post("/api/v1/claims", json=body)
    assert refused.status_code == 409
    assert "it lacks dask_cuda" in refused.json()["detail"]


async def test_what_a_claim_is_used_from_survives_a_restart(site):
    """A claim that waits is placed by it after the manager has come back."""
    used_from = {"versions": {"python": "3.11.7"}, "interpreter": "/opt/python"}
    body = {"workers": {"min": 1, "max": 1}, "environment": "kernel", "used_from": used_from}
    async with await site.client() as client:
        await client.post("/api/v1/claims", json=body)
    [record] = site.parts.service.store.load().claims
    assert record.claim.request.kernel_versions == (("python", "3.11.7"),)
    assert record.claim.request.kernel_interpreter == "/opt/python"
