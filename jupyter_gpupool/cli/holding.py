"""Holds a claim for as long as the command runs; Ctrl-C, SIGTERM and SIGHUP give it back.

Called by `claims.claim`. Needs no Dask: whoever computes attaches to the claim.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.following import Following, Listener
from jupyter_gpupool.notebook.giving_back import give_back
from jupyter_gpupool.notebook.opening import Opening, lost
from jupyter_gpupool.notebook.terms import Gpus, body_of
from jupyter_gpupool.notebook.voice import Voice
from jupyter_gpupool.pool.errors import ClaimLost
from jupyter_gpupool.pool.units import parse_duration
from jupyter_gpupool.protocol.api import ClaimBody, ClaimView

from .stopping import stopped_by_signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """All that a command line asks for, read before anything is requested.

    Attributes:
        body: The claim.
        limit_s: After this time a claim that has not started is given up; None waits for ever.
    """

    body: ClaimBody
    limit_s: float | None


def wish(gpus: Gpus, timeout: str | None, terms: Mapping[str, Any]) -> Wish:
    """Read the options.

    Raises:
        BadRequest: If one of them makes no sense.
    """
    given: Any = {name: value for name, value in terms.items() if value not in (None, "")}
    limit_s = None if timeout is None else parse_duration(timeout, field="timeout").total_seconds()
    return Wish(body=body_of(gpus, given), limit_s=limit_s)


def leave(pool: Pool, wished: Wish, shows: Callable[[ClaimView], None]) -> None:
    """Ask for a claim, show it, say how to come back to it, and leave it to itself.

    Raises:
        PoolError: If the pool says no.
    """
    opening = Opening(pool, body=wished.body)
    with _given_back_on_failure(opening):
        view = pool.background.run(lambda _say: opening.request(), _to_stderr)
        shows(view)
    # Not on standard output, which scripts read the claim from.
    _to_stderr(
        f'Use it in Python: jupyter_gpupool.attach("{view.id}");'
        f" give it back: jupyter gpupool release {view.id}"
    )


def hold(pool: Pool, wished: Wish, runs: Callable[[ClaimView], None]) -> None:
    """Ask for a claim, wait until it runs, say so, and keep it until a signal comes.

    Raises:
        ClaimLost: When it ends by itself.
        PoolError: If the pool says no.
    """
    opening = Opening(pool, body=wished.body)
    with _given_back_on_failure(opening):
        opened = pool.background.run(lambda say: opening.wait(say, wished.limit_s), _to_stderr)
        runs(opened.view)
        reason = pool.background.run(lambda _say: _end_of(pool, opened.view))
    raise lost(opening.name, reason)


@contextmanager
def _given_back_on_failure(opening: Opening) -> Iterator[None]:
    """Whatever ends the block early, the claim does not outlive it."""
    with stopped_by_signals():
        try:
            yield
        except ClaimLost:
            raise
        except BaseException:
            # Before its view is known, the opening itself undoes what it asked for.
            if opening.view is not None:
                released = asyncio.run(give_back(opening.pool, opening.view))
                _to_stderr(f"Claim {released.name} is {released.phase}.")
            raise


async def _end_of(pool: Pool, view: ClaimView) -> str:
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    listener = Listener(changed=Voice().warn, ended=ended.set_result)
    following = Following(pool, view, listener)
    following.start()
    try:
        return await ended
    finally:
        following.stop()


def _to_stderr(text: str) -> None:
    # A terminal that was closed takes no more words; the claim matters more.
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
