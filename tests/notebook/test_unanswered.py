"""A claim whose answer never came is given back, for nobody knows that it was granted."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpupool.client.background import Background
from jupyter_gpupool.client.errors import Unanswered
from jupyter_gpupool.notebook import giving_back
from jupyter_gpupool.notebook.opening import Opening
from jupyter_gpupool.notebook.terms import body_of
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.api import ClaimBody, ClaimView

WITHIN_S = 5.0


@dataclass
class SlowManager:
    """Grants at once, and answers only when it may: a client and a pool in one."""

    view: ClaimView
    failure: Unavailable
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    keys: list[str | None] = field(default_factory=list)

    @property
    def client(self) -> "SlowManager":
        return self

    async def request_claim(self, _body: ClaimBody, *, key: str | None = None) -> ClaimView:
        self.keys.append(key)
        if not self.answers.is_set():
            raise self.failure
        return self.view

    async def release(self, _claim_id: str, _reason: str = "") -> ClaimView:
        self.released.set()
        return self.view


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Callable[[Unavailable], SlowManager]:
    monkeypatch.setattr(giving_back, "_TRY_AGAIN_AFTER_S", 0.01)
    claim = {
        **dict.fromkeys(("id", "name", "owner", "model", "reason"), "c-1"),
        **dict.fromkeys(("phase_since", "created_at"), "2026-11-05T12:00:00Z"),
        "phase": "running",
        "priority": "interactive",
        "seq": 1,
    }
    view = ClaimView.model_validate({**claim, "workers": {"min": 1, "max": 1}})
    return lambda failure: SlowManager(view, failure)


@pytest.fixture(autouse=True)
async def _nothing_goes_on() -> AsyncIterator[None]:
    yield
    for task in tuple(giving_back._unfinished):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _opening(manager: Any) -> Opening:
    return Opening(manager, body=body_of(1, {}))


async def test_unanswered_request_is_given_back_once_it_is_answered(
    manager: Callable[..., SlowManager],
) -> None:
    """With the same key, so that it is that claim and no second one."""
    slow = manager(Unanswered("No answer."))
    with pytest.raises(Unanswered):
        await _opening(slow).request()
    slow.answers.set()
    async with asyncio.timeout(WITHIN_S):
        await slow.released.wait()
    assert len(set(slow.keys)) == 1


async def test_claim_that_was_only_looked_for_is_not_given_back(
    manager: Callable[..., SlowManager],
) -> None:
    """Whoever attaches did not make it: a lost answer must not end it."""
    slow: Any = manager(Unanswered("No answer."))
    slow.find_claim = _fails(slow.failure)
    with pytest.raises(Unanswered):
        await Opening(slow, name="theirs").request()
    assert not giving_back._unfinished


async def test_failed_give_back_on_the_background_loop_is_one_sentence(
    manager: Callable[..., SlowManager], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody waits there: it is told, and no traceback is left behind."""
    slow: Any = manager(Unavailable("The proxy is odd."))
    slow.claim = _fails(slow.failure)
    slow.background = SimpleNamespace(loop=asyncio.get_running_loop())
    giving_back.give_back_at_exit(slow, slow.view, os.getpid(), lambda: None)
    (task,) = giving_back._unfinished
    async with asyncio.timeout(WITHIN_S):
        assert await task is None
    assert capsys.readouterr().err == "Claim c-1 could not be given back: The proxy is odd.\n"


async def test_request_that_was_never_sent_is_let_be(manager: Callable[..., SlowManager]) -> None:
    """Nobody was reached: there is nothing to undo."""
    slow = manager(Unavailable("Nobody there."))
    with pytest.raises(Unavailable):
        await _opening(slow).request()
    assert not giving_back._unfinished


async def test_interrupted_request_is_given_back_however_late_its_answer(
    manager: Callable[..., SlowManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the manager is stopped: the interrupt returns, the release follows."""
    monkeypatch.setattr("jupyter_gpupool.notebook.opening._GIVE_UP_WITHIN_S", 0.05)
    slow = manager(Unanswered("No answer."))
    slow.request_claim = _after_its_answers(slow)  # type: ignore[method-assign]
    request = asyncio.create_task(_opening(slow).request())
    async with asyncio.timeout(WITHIN_S):
        await slow.asked.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert not slow.released.is_set()
    slow.answers.set()
    async with asyncio.timeout(WITHIN_S):
        await slow.released.wait()


@dataclass
class RefusingManager:
    """Does not take a claim back: a client and a pool in one."""

    failure: Exception
    background: Background = field(default_factory=Background)

    @property
    def client(self) -> "RefusingManager":
        return self

    async def release(self, _claim_id: str, *, patience_s: float) -> ClaimView:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Unavailable("The disk is full."), "The disk is full."),
        (TimeoutError(), "The manager does not answer."),
    ],
)
async def test_close_passes_on_what_the_manager_said(
    manager: Callable[..., SlowManager], failure: Exception, said: str
) -> None:
    """One that answered is not called silent."""
    pool: Any = RefusingManager(failure)
    with pytest.raises(Unavailable) as refused:
        await giving_back.give_back(pool, manager(Unavailable("-")).view)
    assert refused.value.message == f"{said} So claim c-1 may still run."


def _fails(error: Exception) -> Any:
    async def fail(*_args: object, **_options: object) -> ClaimView:
        raise error

    return fail


def _after_its_answers(slow: SlowManager) -> Any:
    async def request_claim(_body: ClaimBody, *, key: str | None = None) -> ClaimView:
        slow.keys.append(key)
        slow.asked.set()
        await slow.answers.wait()
        return slow.view

    return request_claim
