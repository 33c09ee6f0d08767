"""Who may do what, on every route there is; a route without a row here fails the test."""

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.routing import WebSocketRoute

from jupyter_gpupool.protocol.api import Role

# For each route: what a stranger, an agent and somebody without a token get.
_BODY = {"workers": {"min": 1, "max": 1}}
_KERNEL = {"host": "h", "boot_id": "b", "pid": 1, "started": 1}
_WINDOW = {
    "queue": "default",
    "devices": 1,
    "begins": "2100-01-05T10:00:00+01:00",
    "ends": "2100-01-05T12:00:00+01:00",
}
_POLICY = {"source": '[queues.a]\nusers = ["*"]\n'}
_ROUTES = {
    ("POST", "/api/v1/claims"): (201, 403, 401),
    ("GET", "/api/v1/claims"): (200, 403, 401),
    ("GET", "/api/v1/claims/{claim_id}"): (404, 403, 401),
    ("POST", "/api/v1/claims/{claim_id}/scale"): (404, 403, 401),
    ("POST", "/api/v1/claims/{claim_id}/release"): (404, 403, 401),
    ("POST", "/api/v1/claims/{claim_id}/hibernate"): (404, 403, 401),
    ("POST", "/api/v1/claims/{claim_id}/resume"): (404, 403, 401),
    ("GET", "/api/v1/claims/{claim_id}/connection"): (404, 403, 401),
    ("PUT", "/api/v1/claims/{claim_id}/kernels/{kernel}"): (404, 403, 401),
    ("DELETE", "/api/v1/claims/{claim_id}/kernels/{kernel}"): (404, 403, 401),
    ("POST", "/api/v1/claims/{claim_id}/keep_alive"): (404, 403, 401),
    ("GET", "/api/v1/claims/{claim_id}/explanation"): (404, 403, 401),
    ("GET", "/api/v1/claims/{claim_id}/logs"): (404, 403, 401),
    ("POST", "/api/v1/estimates"): (200, 403, 401),
    ("POST", "/api/v1/kernels/activity"): (204, 403, 401),
    ("GET", "/api/v1/environments"): (200, 403, 401),
    ("POST", "/api/v1/reservations"): (403, 403, 401),
    ("GET", "/api/v1/reservations"): (200, 403, 401),
    ("DELETE", "/api/v1/reservations/{reservation_id}"): (403, 403, 401),
    ("GET", "/api/v1/demand"): (403, 403, 401),
    ("GET", "/api/v1/usage"): (200, 403, 401),
    ("GET", "/api/v1/policy"): (200, 403, 401),
    ("GET", "/api/v1/policy/revisions"): (403, 403, 401),
    ("GET", "/api/v1/policy/revisions/{revision}"): (403, 403, 401),
    ("GET", "/api/v1/policy/diff"): (403, 403, 401),
    ("POST", "/api/v1/policy/check"): (403, 403, 401),
    ("POST", "/api/v1/policy/apply"): (403, 403, 401),
    ("POST", "/api/v1/policy/dry-run"): (403, 403, 401),
    ("POST", "/api/v1/policy/rollback"): (403, 403, 401),
    ("GET", "/api/v1/status"): (200, 403, 401),
    ("GET", "/api/v1/hosts"): (200, 403, 401),
    ("GET", "/api/v1/devices"): (200, 403, 401),
    ("GET", "/api/v1/events"): (200, 403, 401),
    ("POST", "/api/v1/tokens"): (201, 403, 401),
    ("GET", "/api/v1/tokens"): (200, 403, 401),
    ("DELETE", "/api/v1/tokens/{token_id}"): (404, 403, 401),
    ("GET", "/metrics"): (200, 200, 401),
    ("GET", "/health"): (200, 200, 200),
}
_SOCKETS = {"/api/v1/events/stream": Role.USER, "/api/v1/agents/link": Role.AGENT}
_BODIES = {
    "/api/v1/claims": _BODY,
    "/api/v1/estimates": _BODY,
    "/api/v1/claims/{claim_id}/scale": _BODY,
    "/api/v1/claims/{claim_id}/release": {},
    "/api/v1/claims/{claim_id}/hibernate": {},
    "/api/v1/claims/{claim_id}/resume": {},
    "/api/v1/claims/{claim_id}/kernels/{kernel}": _KERNEL,
    "/api/v1/claims/{claim_id}/keep_alive": {"for_s": 60},
    "/api/v1/kernels/activity": {"kernels": [{"kernel": "k", "state": "dead"}]},
    "/api/v1/tokens": {},
    "/api/v1/reservations": _WINDOW,
    "/api/v1/policy/check": _POLICY,
    "/api/v1/policy/apply": _POLICY,
    "/api/v1/policy/dry-run": _POLICY,
    "/api/v1/policy/rollback": {"revision": 0},
}


def test_every_route_has_its_row(site):
    """Nobody adds a route without saying who may use it."""
    described = site.app.openapi()["paths"]
    found = {(method.upper(), path) for path, item in described.items() for method in item}
    assert found == _ROUTES.keys()


def test_every_socket_has_its_role(site):
    """The same for WebSockets, which the documentation does not list."""
    found = set(_paths(site.app.routes))
    assert found == _SOCKETS.keys()


@pytest.mark.parametrize(("method", "path"), _ROUTES)
@pytest.mark.parametrize("who", ["stranger", "agent", "nobody"])
async def test_nobody_gets_what_is_not_theirs(site, who, method, path):
    """Ann's claim and token exist; everybody else is told what their row says."""
    place = await _filled_in(site, path)
    callers = {
        "stranger": site.client("bob"),
        "agent": site.client("agent", Role.AGENT),
    }
    client = await callers.pop(who) if who in callers else site.anonymous()
    for unused in callers.values():
        unused.close()
    async with client:
        answer = await client.request(method, place, json=_BODIES.get(path))
    wanted = dict(zip(("stranger", "agent", "nobody"), _ROUTES[method, path], strict=True))
    assert answer.status_code == wanted[who], answer.text


async def test_lists_hold_nothing_of_a_stranger(site):
    """Neither claims, events, tokens nor the names behind a leased device."""
    await site.host()
    await _filled_in(site, "")
    async with await site.client("bob") as client:
        answers = [
            (await client.get(f"/api/v1/{what}")).text
            for what in ("claims?ended=true", "claims?owner=ann", "events", "tokens", "devices")
        ]
    assert not [text for text in answers if "ann" in text or '"c-' in text]


async def test_admin_sees_all_but_connects_to_nothing(site):
    """Even an admin is no party of another's claim."""
    await site.host()
    place = await _filled_in(site, "/api/v1/claims/{claim_id}")
    async with await site.client("root", Role.ADMIN) as client:
        seen = [await client.get(f"{place}{what}") for what in ("", "/explanation")]
        private = [await client.get(f"{place}/{what}") for what in ("connection", "logs")]
        private += [await client.put(f"{place}/kernels/mine", json=_KERNEL)]
        private += [await client.delete(f"{place}/kernels/k")]
    assert {answer.status_code for answer in seen} == {200}
    assert {answer.status_code for answer in private} == {403}


async def test_what_a_stranger_says_of_a_kernel_is_ignored(site):
    """Nobody tells the pool that another's kernel is dead."""
    place = await _filled_in(site, "/api/v1/claims/{claim_id}")
    dead = {"kernels": [{"kernel": "k", "state": "dead"}]}
    for user, role in (("bob", Role.USER), ("root", Role.ADMIN)):
        async with await site.client(user, role) as client:
            await client.post("/api/v1/kernels/activity", json=dead)
    async with await site.client("ann") as ann:
        [kernel] = (await ann.get(place)).json()["kernels"]
    assert kernel["state"] == "unknown"


@pytest.mark.parametrize(
    "body", [{"user": "bob"}, {"role": "admin"}, {"role": "agent"}, {"os_user": "root"}]
)
async def test_user_cannot_make_more_of_themself(site, body):
    """Another's name, another role, another's processes: all for an admin to give."""
    async with await site.client("ann") as client:
        answer = await client.post("/api/v1/tokens", json=body)
    assert answer.status_code == 403


async def _filled_in(site, path: str) -> str:
    async with await site.client("ann") as ann:
        claim = (await ann.post("/api/v1/claims", json=_BODY)).json()["id"]
        token = (await ann.get("/api/v1/tokens")).json()[0]["id"]
        await ann.put(f"/api/v1/claims/{claim}/kernels/k", json=_KERNEL)
    booked = await _booked(site) if "reservation_id" in path else ""
    return path.format(
        claim_id=claim, token_id=token, kernel="k", reservation_id=booked, revision=0
    )


async def _booked(site) -> str:
    await site.host()
    async with await site.client("root", Role.ADMIN) as root:
        return (await root.post("/api/v1/reservations", json=_WINDOW)).json()["id"]


def _paths(routes):
    for route in routes:
        if isinstance(route, APIWebSocketRoute | WebSocketRoute):
            yield route.path
        elif not isinstance(route, APIRoute):
            inner = getattr(route, "original_router", None)
            prefix = getattr(getattr(route, "include_context", None), "prefix", "")
            if inner is not None:
                yield from (prefix + path for path in _paths(inner.routes))
