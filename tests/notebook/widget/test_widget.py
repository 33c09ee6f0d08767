"""Cards against a real pool: in step, told by events, doing what is pressed, gone when closed."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from waiting import eventually

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.api import ClaimBody, ClaimView, Workers

anywidget = pytest.importorskip("anywidget", reason="needs anywidget")
from jupyter_gpupool.notebook.widget.feed import feed_of  # noqa: E402 - after the skip
from jupyter_gpupool.notebook.widget.widget import ClaimCard, shown_card  # noqa: E402 - as above

pytestmark = pytest.mark.e2e
WITHIN_S = 20.0
TOO_MANY = 60


@pytest.fixture
def a_claim(pool: Pool) -> Iterator[Callable[..., ClaimView]]:
    """Ask for a claim; it is given back at the end."""
    asked: list[ClaimView] = []

    def ask(workers: int = 1) -> ClaimView:
        body = ClaimBody(workers=Workers(min=1 if workers < TOO_MANY else workers, max=workers))
        asked.append(pool.background.run(lambda _say: pool.client.request_claim(body)))
        return asked[-1]

    yield ask
    for view in asked:
        _release(pool, view)


@pytest.fixture
def a_card(pool: Pool) -> Iterator[Callable[[ClaimView], ClaimCard]]:
    """Show a claim; the card is closed at the end."""
    cards: list[ClaimCard] = []

    def show(view: ClaimView) -> ClaimCard:
        cards.append(ClaimCard(view, pool=pool))
        return cards[-1]

    yield show
    for card in cards:
        card.close()


def test_card_is_told_of_every_change(a_claim, a_card):
    """From the request on, with its devices, without being asked."""
    card = a_card(a_claim())
    eventually(lambda: card.cards["en"]["look"] == "running", WITHIN_S)
    (device,) = card.cards["en"]["devices"]
    assert (device["state"], device["memory"]) == ("Running", "16 GiB")


def test_cards_of_one_claim_share_one_feed_and_are_in_step(pool, a_claim, a_card):
    """However many there are, the pool is followed once."""
    view = a_claim()
    one, two = a_card(view), a_card(view)
    assert feed_of(pool, view).listeners == 2
    eventually(lambda: one.cards["en"]["look"] == "running", WITHIN_S)
    assert one.cards == two.cards


def test_claim_shown_twice_is_one_card(pool, a_claim):
    """One widget with two views; a closed one is made anew."""
    view = a_claim()
    card = shown_card(view, pool)
    assert shown_card(view, pool) is card
    card.close()
    again = shown_card(view, pool)
    assert again is not card
    again.close()


def test_release_ends_the_claim_and_the_feed(pool, a_claim, a_card, view_of):
    """The end state stays, and nobody follows what is over."""
    view = a_claim()
    card = a_card(view)
    eventually(lambda: card.cards["en"]["look"] == "running", WITHIN_S)
    _press(card, act="release")
    eventually(lambda: card.cards["en"]["look"] == "released", WITHIN_S)
    eventually(lambda: not feed_of(pool, view).is_running, WITHIN_S)
    assert "asked for in its card" in view_of(view.id).reason


def test_cancel_gives_up_the_place_in_line(a_claim, a_card):
    """A claim that never ran is cancelled, not released."""
    card = a_card(a_claim(TOO_MANY))
    assert card.cards["en"]["look"] == "waiting"
    _press(card, act="cancel")
    eventually(lambda: card.cards["en"]["look"] == "cancelled", WITHIN_S)


def test_scale_asks_for_a_number(a_claim, a_card, view_of):
    """The same number twice is the same wish."""
    view = a_claim()
    card = a_card(view)
    _press(card, act="scale", workers=2)
    _press(card, act="scale", workers=2)
    eventually(lambda: len(card.cards["en"]["devices"]) == 2, WITHIN_S)
    assert view_of(view.id).workers.max == 2


def test_keep_says_until_when(a_claim, a_card, view_of):
    """For an hour from now on."""
    view = a_claim()
    card = a_card(view)
    _press(card, act="keep")
    eventually(lambda: view_of(view.id).kept_until is not None, WITHIN_S)
    eventually(lambda: "kept until " in card.cards["en"]["state"], WITHIN_S)


def test_refusal_is_one_sentence_in_the_card(a_claim, a_card):
    """And the card can be used again."""
    card = a_card(a_claim())
    _press(card, act="scale", workers=10**9)
    eventually(lambda: bool(card.trouble), WITHIN_S)
    assert "Traceback" not in card.trouble
    eventually(lambda: card.doing == "", WITHIN_S)


@pytest.mark.parametrize(
    "content", [{}, {"act": "explode"}, "release", {"act": "scale", "workers": -1}]
)
def test_message_that_makes_no_sense_is_refused(content, a_claim, a_card):
    """A browser of another version breaks nothing."""
    card = a_card(a_claim())
    card._handle_custom_msg(content, [])
    assert card.trouble.startswith("The card's button asks for something")


def test_closed_card_listens_no_more(pool, a_claim):
    """And the last one ends the feed; the claim goes on."""
    view = a_claim()
    card = ClaimCard(view, pool=pool)
    feed = feed_of(pool, view)
    eventually(lambda: feed.is_running, WITHIN_S)
    card.close()
    assert feed.listeners == 0
    eventually(lambda: not feed.is_running, WITHIN_S)


async def test_cluster_that_is_not_requested_has_no_card(pool):
    """One sentence says what to do first."""
    cluster = claim(1, pool=pool, asynchronous=True, quiet=True)
    with pytest.raises(BadRequest, match="not requested yet"):
        ClaimCard(cluster)
    await cluster.close()


def test_silent_manager_makes_the_card_old(another_pool: tuple[EmbeddedPool, Pool]):
    """As last known: the claim itself runs on."""
    embedded, pool = another_pool
    body = ClaimBody(workers=Workers(min=1, max=1))
    view = pool.background.run(lambda _say: pool.client.request_claim(body))
    card = ClaimCard(view, pool=pool)
    eventually(lambda: card.cards["en"]["look"] == "running", WITHIN_S)
    assert embedded.address is not None
    assert embedded.address.manager_pid is not None
    os.kill(embedded.address.manager_pid, signal.SIGKILL)
    eventually(lambda: card.cards["en"]["is_old"], WITHIN_S)
    assert card.cards["en"]["look"] == "running"
    card.close()
    embedded.start()  # the next manager ends what this one left


def _press(card: ClaimCard, **content: Any) -> None:
    """As a browser's message reaches the widget."""
    card._handle_custom_msg(content, [])


def _release(pool: Pool, view: ClaimView) -> None:
    pool.background.run(lambda _say: pool.client.release(view.id))
    eventually(lambda: _phase(pool, view) is Phase.ENDED, WITHIN_S)


def _phase(pool: Pool, view: ClaimView) -> Phase:
    return pool.background.run(lambda _say: pool.client.claim(view.id)).phase
