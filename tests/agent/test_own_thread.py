"""Work that may hang for ever, beside the event loop."""

import asyncio
import threading

import pytest

from jupyter_gpupool.agent.own_thread import in_own_thread


async def test_outcome_is_told_whatever_it_is() -> None:
    """A result or an error."""
    assert await in_own_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await in_own_thread(lambda: 1 // 0)


async def test_work_that_hangs_holds_up_nobody_else() -> None:
    """However much of it there is: no pool of threads runs out."""
    never = threading.Event()
    hanging = [in_own_thread(never.wait) for _ in range(100)]
    async with asyncio.timeout(10):
        assert await in_own_thread(lambda: 7) == 7
    assert not any(each.done() for each in hanging)
    never.set()
    await asyncio.gather(*hanging)


def test_work_that_outlives_its_loop_harms_nobody() -> None:
    """Its outcome is nobody's."""
    never = threading.Event()

    async def give_up() -> None:
        in_own_thread(never.wait).cancel()

    asyncio.run(give_up())
    never.set()
    _wait_for_threads()


def test_result_that_outlives_its_loop_is_undone() -> None:
    """What it holds, such as a process, would else be nobody's and stay."""
    never, undone = threading.Event(), list[bool]()

    async def leave() -> None:
        in_own_thread(never.wait, undo=undone.append)

    asyncio.run(leave())
    never.set()
    _wait_for_threads()
    assert undone == [True]


def _wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "gpupool may hang":
            thread.join(10)
