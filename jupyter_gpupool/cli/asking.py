"""Asks the pool something and returns its answer: what every command does first."""

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.client.pools import Pool

_T = TypeVar("_T")


def the_pool() -> "Pool":
    """The pool of this user.

    Raises:
        PoolError: If there is none and none can be started.
    """
    from jupyter_gpupool.client.pools import current_pool  # noqa: PLC0415 - 0.3 s

    return current_pool()


def ask(question: "Callable[[PoolClient], Coroutine[Any, Any, _T]]") -> _T:
    """Put one question to the pool.

    Raises:
        PoolError: What the manager says no to.
    """
    pool = the_pool()
    return pool.background.run(lambda _say: question(pool.client), _say)


def _say(text: str) -> None:
    click.echo(text, err=True)
