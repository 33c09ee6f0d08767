"""What is called off ends, wherever it waits."""

import asyncio

import pytest

from jupyter_gpupool.runtime.interruption import CalledOff, Interruption


async def test_work_that_is_not_called_off_gives_its_result():
    """As if nobody watched."""

    async def work():
        await asyncio.sleep(0)
        return 42

    assert await Interruption().unless(work()) == 42


async def test_error_of_the_work_comes_through():
    """Nothing is hidden."""

    async def work():
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await Interruption().unless(work())


async def test_work_that_waits_for_ever_is_called_off():
    """And has ended by then."""
    interruption, ended = Interruption(), []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    doing = asyncio.create_task(interruption.unless(work()))
    await asyncio.sleep(0)
    interruption.call_off()
    with pytest.raises(CalledOff):
        await doing
    assert ended


async def test_what_begins_afterwards_is_not_called_off():
    """An old order says nothing about new work."""
    interruption = Interruption()
    interruption.call_off()
    assert await interruption.unless(asyncio.sleep(0, "done")) == "done"
