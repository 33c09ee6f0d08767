"""One loop for all talk with the pool, from any thread or loop."""

import _thread
import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from jupyter_gpupool.client.background import Background, Say, saying

_WITHIN_S = 10.0


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def _refuse(_say: Say) -> Coroutine[Any, Any, None]:
    raise LookupError("no such call")


async def test_whatever_lies_deep_within_a_call_can_be_heard() -> None:
    """As long as the call lasts: what it began and left running has nobody to tell."""
    background, words, kept = Background(), list[str](), list[Say]()

    async def speak(_say: Say) -> None:
        say = saying.get()
        assert say is not None
        kept.append(say)
        say("while it runs")

    await background.bridge(speak, words.append)
    kept[0]("too late")
    await asyncio.sleep(0)
    assert words == ["while it runs"]


def test_threads_share_one_loop() -> None:
    """Ten threads get their own answers from one background thread."""
    background, answers = Background(), list[int]()

    def work(number: int) -> None:
        answers.append(background.run(lambda _say: _double(number)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [2 * number for number in range(10)]


def test_loop_may_be_wanted_while_it_is_looked_up() -> None:
    """By what the garbage collector calls: a forgotten claim is given back through it."""
    background = Background()

    def look_up() -> None:
        with background._lock:
            _ = background.loop

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_errors_reach_the_caller() -> None:
    """As themselves."""

    async def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        Background().run(lambda _say: fail())


def test_call_that_cannot_even_begin_reaches_the_caller() -> None:
    """As an error, and not as a wait without end."""
    asked: list[BaseException] = []

    def ask() -> None:
        try:
            Background().run(_refuse)
        except LookupError as error:
            asked.append(error)

    # In a thread that may be left behind: without the promise it would never end.
    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    asker.join(10)
    assert [str(error) for error in asked] == ["no such call"]


async def test_bridged_call_that_cannot_even_begin_reaches_the_caller() -> None:
    """The same for a caller on a loop of its own."""
    async with asyncio.timeout(10):
        with pytest.raises(LookupError, match="no such call"):
            await Background().bridge(_refuse)


def test_words_are_said_in_the_callers_thread() -> None:
    """So that a notebook shows them under the cell that waits."""
    heard: list[tuple[str, int]] = []

    async def talk(say: Say) -> None:
        say("one")
        await asyncio.sleep(0)
        say("two")

    Background().run(talk, lambda text: heard.append((text, threading.get_ident())))
    assert heard == [("one", threading.get_ident()), ("two", threading.get_ident())]


def test_interrupt_waits_for_the_clean_up() -> None:
    """Ctrl-C cancels the coroutine, and what it undoes is undone before it is raised."""
    undone: list[str] = []

    async def work(say: Say) -> None:
        say("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            undone.append("undone")
            raise

    def interrupt(_text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Background().run(work, interrupt)
    assert undone == ["undone"]


def test_interrupt_that_comes_right_before_the_wait_is_not_lost() -> None:
    """Python notes such a signal without being woken by it, which is what is played here."""

    async def work(_say: Say) -> None:
        # From another thread, this notes an interrupt and wakes nobody.
        asyncio.get_running_loop().call_later(0.2, _thread.interrupt_main)
        await asyncio.sleep(_WITHIN_S)

    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Background().run(work)
    assert time.monotonic() - began_s < _WITHIN_S


async def test_bridge_answers_on_the_callers_loop() -> None:
    """And says its words there, too."""
    heard: list[int] = []

    async def talk(say: Say) -> int:
        say("word")
        return await _double(3)

    answer = await Background().bridge(talk, lambda _text: heard.append(threading.get_ident()))
    assert (answer, heard) == (6, [threading.get_ident()])


async def test_cancelled_bridge_waits_for_the_clean_up() -> None:
    """A cancelled task leaves nothing half done."""
    undone, started = list[str](), asyncio.Event()

    async def work(say: Say) -> None:
        say("started")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            undone.append("undone")

    task = asyncio.create_task(Background().bridge(work, lambda _text: started.set()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert undone == ["undone"]
