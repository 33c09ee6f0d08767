"""Which dashboards are known, and that none of them holds up another."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest

from jupyter_gpupool.manager.certificates import make_secrets
from jupyter_gpupool.pool.errors import Conflict
from jupyter_gpupool.protocol.api import ConnectionView
from jupyter_gpupool.server import upstream
from jupyter_gpupool.server.upstream import Upstreams

if TYPE_CHECKING:
    from jupyter_gpupool.server.server_pool import ServerPool

WITHIN_S = 30


@dataclass
class Manager:
    """As much of a pool as says where a dashboard is."""

    views: dict[str, ConnectionView] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)

    @property
    def client(self) -> "Manager":
        return self

    async def use(self, *, start: bool) -> "Manager":
        assert not start
        return self

    async def connection(self, claim_id: str) -> ConnectionView:
        if claim_id in self.silent:
            await asyncio.Event().wait()
        return self.views[claim_id]


@pytest.fixture
def manager() -> Manager:
    """It knows the claims "one" and "two"."""
    secrets = make_secrets(datetime.now(UTC), timedelta(days=1))
    view = ConnectionView(
        scheduler_address="tls://h:1",
        dashboard_url=f"https://h:2/{secrets.dashboard_prefix}/status",
        ca=secrets.ca,
        certificate=secrets.client.certificate,
        key=secrets.client.key,
    )
    return Manager({"one": view, "two": view})


@pytest.fixture
def upstreams(manager: Manager) -> Upstreams:
    """What was looked at: nothing yet."""
    return Upstreams(cast("ServerPool", manager))


async def test_a_dashboard_that_is_asked_for_slowly_holds_up_no_other(
    manager: Manager, upstreams: Upstreams
) -> None:
    """Each is asked for by itself."""
    manager.silent.add("one")
    slow = asyncio.create_task(upstreams.of("one"))
    async with asyncio.timeout(WITHIN_S):
        assert await upstreams.of("two")
    slow.cancel()
    await upstreams.close()


async def test_a_dashboard_is_asked_for_once_by_all_its_parts(
    manager: Manager, upstreams: Upstreams
) -> None:
    """A page has dozens of them."""
    first, second = await asyncio.gather(upstreams.of("one"), upstreams.of("one"))
    manager.silent.add("one")
    assert first is second is await upstreams.of("one")
    await upstreams.close()


async def test_what_nobody_looks_at_is_let_go(
    upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections close; whoever comes again asks anew."""
    old = await upstreams.of("one")
    monkeypatch.setattr(upstream, "_KEPT_S", 0.0)
    await upstreams.of("two")
    assert old.http.is_closed
    monkeypatch.undo()
    assert (await upstreams.of("one")) is not old
    await upstreams.close()


async def test_a_claim_without_a_dashboard_says_so(manager: Manager, upstreams: Upstreams) -> None:
    """Its scheduler may be starting."""
    manager.views["one"] = manager.views["one"].model_copy(update={"dashboard_url": None})
    with pytest.raises(Conflict, match="no dashboard yet"):
        await upstreams.of("one")
