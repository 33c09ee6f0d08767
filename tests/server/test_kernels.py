"""Real kernels of a real kernel manager, and what is seen of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.session import Session
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager

from jupyter_gpupool.server.kernels import KernelWatch, Seen

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
_WITHIN_S = 60


@dataclass
class Watched:
    """One kernel that is watched."""

    manager: AsyncMappingKernelManager
    watch: KernelWatch
    told: asyncio.Event
    id: str = ""
    client: AsyncKernelClient = field(default_factory=AsyncKernelClient)

    @property
    def seen(self) -> Seen:
        return self.watch.seen[self.id]

    async def until(self, holds: Callable[[Seen], bool]) -> Seen:
        """What is seen once this holds; looked at whenever the watch tells of a change."""
        async with asyncio.timeout(_WITHIN_S):
            while not holds(self.seen):
                self.told.clear()
                await self.told.wait()
        return self.seen


@asynccontextmanager
async def _a_kernel() -> AsyncIterator[Watched]:
    told = asyncio.Event()
    manager = AsyncMappingKernelManager()
    watched = Watched(manager, KernelWatch(manager, told.set), told)
    watched.watch.begin()
    watched.id = await manager.start_kernel(kernel_name="python3")
    watched.client = manager.get_kernel(watched.id).client()
    watched.client.start_channels()
    await watched.client.wait_for_ready(timeout=_WITHIN_S)
    yield watched
    watched.client.stop_channels()
    await manager.shutdown_all(now=True)
    # Else it is left to the garbage collector, which may take a socket's context first.
    manager.context.destroy(linger=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Watched]:
    """A kernel that has come up, for all tests that leave it as it was."""
    async with _a_kernel() as watched:
        yield watched


@pytest_asyncio.fixture(loop_scope="module")
async def kernel(shared: Watched) -> Watched:
    """That kernel, quiet."""
    await shared.until(lambda seen: not seen.work.is_busy)
    return shared


@pytest_asyncio.fixture(loop_scope="module")
async def own_kernel() -> AsyncIterator[Watched]:
    """A kernel of the test's own, to be ended."""
    async with _a_kernel() as watched:
        yield watched


Ask = Callable[[AsyncKernelClient], Awaitable[object]]


async def _silent(client: AsyncKernelClient) -> object:
    return await client.execute_interactive("1", silent=True, timeout=_WITHIN_S)


async def test_a_cell_is_seen_from_its_beginning_to_its_end(kernel: Watched) -> None:
    """Busy, and then quiet since its end."""
    before = kernel.seen.work.quiet_since
    kernel.client.execute("input_ = 1; import time; time.sleep(0.2)")
    await kernel.until(lambda seen: seen.work.is_busy)
    after = await kernel.until(lambda seen: not seen.work.is_busy)
    assert after.work.quiet_since > before


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(_silent, id="silent code"),
        pytest.param(lambda client: client.kernel_info(reply=True), id="kernel_info"),
        pytest.param(lambda client: client.comm_info(reply=True), id="comm_info"),
        pytest.param(lambda client: client.complete("impo", reply=True), id="complete"),
        pytest.param(lambda client: client.inspect("int", reply=True), id="inspect"),
        pytest.param(lambda client: client.history(reply=True), id="history"),
    ],
)
async def test_what_lab_asks_by_itself_is_no_activity(kernel: Watched, ask: Ask) -> None:
    """The time since a person's last cell goes on."""
    before = kernel.seen.work
    async with asyncio.timeout(_WITHIN_S):
        await ask(kernel.client)
        # All before it was heard once this is: a kernel's messages keep their order.
        kernel.client.execute("1")
        await kernel.until(lambda seen: seen.work.is_busy)
    assert kernel.seen.work.quiet_since == before.quiet_since


async def test_a_restart_is_not_death(own_kernel: Watched) -> None:
    """The kernel comes back under its id; what it did is over."""
    own_kernel.client.execute("import time; time.sleep(600)")
    await own_kernel.until(lambda seen: seen.work.is_busy)
    await own_kernel.manager.restart_kernel(own_kernel.id, now=True)
    after = await own_kernel.until(lambda seen: not seen.work.is_busy)
    assert not after.is_dead


async def test_what_a_restart_left_unheard_is_asked_for(
    own_kernel: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that nobody uses after it came up is known to be quiet, not starting for ever."""
    hear, hears = own_kernel.watch._hear, asyncio.Event()

    def hears_late(kernel_id: str, session: Session, parts: list[Any]) -> None:
        if hears.is_set():
            hear(kernel_id, session, parts)

    monkeypatch.setattr(own_kernel.watch, "_hear", hears_late)
    await (await own_kernel.manager.restart_kernel(own_kernel.id, now=True))
    assert not own_kernel.seen.process
    hears.set()
    assert not (await own_kernel.until(lambda seen: bool(seen.process))).work.is_busy


async def test_last_words_of_a_former_process_are_not_its_successors(own_kernel: Watched) -> None:
    """Else a cell that was cut short would go on for ever."""
    own_kernel.client.execute("1")
    before = await own_kernel.until(lambda seen: bool(seen.process))
    await (await own_kernel.manager.restart_kernel(own_kernel.id, now=True))
    after = await own_kernel.until(lambda seen: bool(seen.process))
    assert (after.former, after.process != before.process) == (before.process, True)


async def test_a_kernel_that_is_shut_down_is_dead(own_kernel: Watched) -> None:
    """And forgotten once that was told."""
    await own_kernel.manager.shutdown_kernel(own_kernel.id, now=True)
    assert (await own_kernel.until(lambda seen: seen.is_dead)).is_dead
    own_kernel.watch.forget(own_kernel.id)
    assert not own_kernel.watch.seen


async def test_a_living_kernel_is_not_forgotten(kernel: Watched) -> None:
    """However often it is told of."""
    kernel.watch.forget(kernel.id)
    assert kernel.id in kernel.watch.seen


async def test_kernels_behind_a_gateway_are_left_alone() -> None:
    """They are another server's to watch."""
    watch = KernelWatch(object(), asyncio.Event().set)
    watch.begin()
    assert not watch.seen
