"""What has to go on as long as the agent does."""

import asyncio

import pytest

from jupyter_gpupool.agent.supervision import supervised


async def test_fault_does_not_end_the_work(caplog) -> None:
    """It is logged, and the work begins again."""
    going_on = asyncio.Event()
    runs: list[int] = []

    async def work() -> None:
        runs.append(1)
        if len(runs) < 3:
            raise OSError("no descriptor left")
        going_on.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(supervised("the look", work, pause_s=0))
    async with asyncio.timeout(5):
        await going_on.wait()
    task.cancel()
    assert caplog.text.count("A fault in the look") == 2


async def test_faults_that_do_not_stop_end_the_agent() -> None:
    """The next one adopts what runs."""

    async def work() -> None:
        raise OSError("broken")

    async with asyncio.timeout(5):
        with pytest.raises(OSError, match="broken"):
            await supervised("the look", work, pause_s=0)
