"""The link's own rules; what goes over it is in test_host.py and test_app.py."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from agent_harness.manager_end import DEADLINE_S
from pydantic import ValidationError

from jupyter_gpupool.agent.host import HostAgent
from jupyter_gpupool.agent.link import Link, LinkTarget, check_url, clock_problem, link_url
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.link import LookNow, WantedWorker


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8780", "ws://127.0.0.1:8780/api/v1/agents/link"),
        ("https://pool.org/", "wss://pool.org/api/v1/agents/link"),
        ("https://hub.org/services/gpupool/", "wss://hub.org/services/gpupool/api/v1/agents/link"),
        ("http://[::1]:1", "ws://[::1]:1/api/v1/agents/link"),
    ],
)
def test_manager_address_becomes_a_websockets(url, expected) -> None:
    """A path in front of it is kept."""
    check_url(url)
    assert link_url(url) == expected


@pytest.mark.parametrize("url", ["", "pool.org", "ftp://pool.org", "http://", "ws://pool.org"])
def test_nonsense_is_refused_with_an_example(url) -> None:
    """It says what to write."""
    with pytest.raises(BadRequest, match="--join https://"):
        check_url(url)


def test_token_never_crosses_a_network_in_the_open() -> None:
    """Unless an admin says that nobody else is on it."""
    with pytest.raises(BadRequest, match="unencrypted"):
        check_url("http://pool.org")
    check_url("http://pool.org", allow_plain_http=True)
    check_url("https://pool.org")


@pytest.mark.parametrize("skew_s", [0, 59, -59])
def test_small_skew_is_no_problem(skew_s) -> None:
    """Networks take their time."""
    assert clock_problem(skew_s) == ""


def test_large_skew_says_how_much_and_which_way() -> None:
    """An admin can act on it."""
    assert clock_problem(3600) == "This host's clock is 1 h ahead of the manager's clock."
    assert "1 min 1 s behind" in clock_problem(-61)


def test_token_stays_out_of_repr() -> None:
    """A target that is logged by mistake gives nothing away."""
    assert "hush" not in repr(LinkTarget(url="http://x", token="hush"))


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc", "/etc", "a/b", ".hidden", "a\0b", "x" * 101]
)
def test_id_that_leads_elsewhere_is_no_id(name, wanted_claim) -> None:
    """A root agent makes and removes folders of that name."""
    with pytest.raises(ValidationError):
        wanted_claim(name)
    with pytest.raises(ValidationError):
        WantedWorker(lease_id=name, device="GPU-1")


class Clock:
    """A clock that is turned by hand."""

    now_s = 0.0
    passes_s = 0.0
    """How much time passes from one look at it to the next."""

    def __call__(self) -> float:
        self.now_s += self.passes_s
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def host(make_host) -> HostAgent:
    return make_host().make()


@pytest.fixture
async def linked(host, manager_end, clock) -> AsyncIterator[asyncio.Task[None]]:
    """A link that has joined, with a minute until its host is an orphan."""
    target = LinkTarget(url=manager_end.url, token=manager_end.token)
    link = Link(target, host, orphan_after_s=60, clock=clock)
    running = asyncio.create_task(link.run())
    await manager_end.until(lambda _: link.has_joined)
    yield running
    running.cancel()
    await asyncio.wait([running], timeout=DEADLINE_S)


@pytest.mark.parametrize("turns", range(6))
async def test_link_that_is_told_to_end_while_there_is_news_ends(linked, host, turns) -> None:
    """However few turns of the loop lie between the two."""
    host.news.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    linked.cancel()
    done, _ = await asyncio.wait([linked], timeout=DEADLINE_S)
    assert done == {linked}


async def test_manager_that_asks_is_answered_at_once(linked, host, manager_end) -> None:
    """With all that was seen until now, though the last window has just ended."""
    host.look_now()
    await manager_end.until(lambda _: True)
    count = len(manager_end.reports)
    await manager_end.say(LookNow())
    await manager_end.until(lambda _: len(manager_end.reports) > count, deadline_s=5)


async def test_quiet_manager_is_not_away(linked, manager_end, clock) -> None:
    """Time counts from the loss of the link, not from the manager's last word."""
    clock.now_s = 3600
    await manager_end.hang_up()
    await manager_end.until_alone()
    await manager_end.until(lambda _: True)
    assert not linked.done()


async def test_manager_that_stays_away_leaves_an_orphan(linked, manager_end, clock) -> None:
    """The link ends once its time is over."""
    clock.passes_s = 30
    await manager_end.close()
    async with asyncio.timeout(DEADLINE_S):
        await linked
