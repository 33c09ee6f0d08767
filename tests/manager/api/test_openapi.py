"""The API does what its own description says, for whatever fits that description."""

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from jupyter_gpupool.protocol.api import Role


async def test_nothing_that_fits_the_schema_breaks_the_manager(site):
    """Random requests by the description: no answer is a server's error."""
    token = await site.token("root", Role.ADMIN)
    document = site.app.openapi()
    schema = schemathesis.openapi.from_dict(document)
    wrong: list[str] = []
    cases = []

    for operation in schema.get_all_operations():
        made = operation.ok()

        @settings(
            max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @__import__("hypothesis").given(case=made.as_strategy())
        def collect(case):
            cases.append(case)

        collect()
    async with site.anonymous({"Authorization": f"Bearer {token}"}) as client:
        for case in cases:
            request = case.as_transport_kwargs(base_url="http://pool")
            request.get("headers", {}).pop("Authorization", None)
            answer = await client.request(**_usable(request))
            if answer.status_code >= 500:
                wrong.append(f"{request['method']} {request['url']}: {answer.text}")
    assert len(cases) > 100
    assert wrong == []
    assert not_a_server_error


def _usable(request):
    known = {"method", "url", "headers", "params", "json", "data", "cookies"}
    kept = {k: v for k, v in request.items() if k in known and v is not None}
    kept.pop("cookies", None)
    if "data" in kept:
        kept["content"] = kept.pop("data")
    return kept
