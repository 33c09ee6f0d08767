"""The claim's card as an anywidget: pushes what it is told, passes on what is pressed.

Made by `showing`, or by a user who wants the widget itself. Nothing here blocks the kernel: the
pool is asked on the background loop, and a browser hears of it when the answer is there.
"""

import asyncio
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anywidget
import traitlets

from jupyter_gpupool.client.pools import Pool, current_pool
from jupyter_gpupool.notebook.cluster import ClaimCluster
from jupyter_gpupool.pool.errors import BadRequest, PoolError
from jupyter_gpupool.protocol.api import ClaimView

from .card_model import Snapshot, cards_in_json
from .feed import Feed, feed_of
from .pressing import Press, carry_out, read_press

_STATIC = Path(__file__).parent / "static"


def _nothing() -> None:
    """There is nothing to leave yet."""


class ClaimCard(anywidget.AnyWidget):
    """A live card of a claim; any number of views of it are in step.

    Attributes:
        cards: The card in each language, as JSON; the browser chooses.
        doing: The act that is under way, or "".
        trouble: Why the last act could not be done, in one sentence, or "".
    """

    _leave: Callable[[], None] = staticmethod(_nothing)
    _esm = _STATIC / "card.js"
    _css = _STATIC / "card.css"
    cards = traitlets.Dict().tag(sync=True)
    doing = traitlets.Unicode("").tag(sync=True)
    trouble = traitlets.Unicode("").tag(sync=True)

    def __init__(self, of: ClaimCluster | ClaimView, *, pool: Pool | None = None) -> None:
        self._feed = _feed(of, pool)
        super().__init__(cards=cards_in_json(self._feed.latest, datetime.now(UTC)))
        self.on_msg(self._pressed)
        self._leave = self._feed.listen(self._has_changed)

    def close(self) -> None:
        """Take the card away and listen no more; the claim stays as it is."""
        self._leave()
        super().close()

    def _has_changed(self, snapshot: Snapshot) -> None:
        self.cards = cards_in_json(snapshot, datetime.now(UTC))

    def _pressed(self, _widget: object, content: object, _buffers: object) -> None:
        try:
            press = read_press(content)
        except BadRequest as error:
            self.trouble = str(error)
            return
        asyncio.run_coroutine_threadsafe(self._do(press), self._feed.pool.background.loop)

    async def _do(self, press: Press) -> None:
        self.doing, self.trouble = press.act, ""
        try:
            feed = self._feed
            feed.heard(await carry_out(press, feed.pool, feed.latest.view))
        except PoolError as error:
            self.trouble = str(error)
        finally:
            self.doing = ""


_shown: "weakref.WeakValueDictionary[int, ClaimCard]" = weakref.WeakValueDictionary()
"""By the id of its feed, which it keeps alive."""


def shown_card(of: ClaimCluster | ClaimView, pool: Pool | None = None) -> ClaimCard:
    """The card that shows a claim in this kernel: shown twice, it is one with two views."""
    feed = _feed(of, pool)
    card = _shown.get(id(feed))
    if card is None or card.comm is None:
        card = _shown[id(feed)] = ClaimCard(of, pool=pool)
    return card


def _feed(of: ClaimCluster | ClaimView, pool: Pool | None) -> Feed:
    if isinstance(of, ClaimView):
        return feed_of(pool or current_pool(), of)
    if of.view is None:
        raise BadRequest("The claim is not requested yet.", hint="First: await cluster")
    return feed_of(of.pool, of.view)
