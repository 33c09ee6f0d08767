"""A command that somebody waits for, and how they hear what came of it.

Queued and run by `service`. One that fails spoils nothing for the others of its batch.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from jupyter_gpupool.pool.errors import PoolError

from .unit import UnitOfWork

_LOG = logging.getLogger(__name__)

_R = TypeVar("_R")
Command = Callable[[UnitOfWork], _R]


@dataclass(frozen=True, slots=True)
class Job:
    """A command, and who waits for its answer."""

    command: Command[Any]
    answer: asyncio.Future[Any]


def attempt(unit: UnitOfWork, job: Job) -> tuple[Any] | None:
    """Run a job's command; None if it failed, which whoever waits has heard already."""
    child = unit.child()
    try:
        result = job.command(child)
    except PoolError as error:
        _fail(job, error)
        return None
    except Exception as error:  # noqa: BLE001 - one broken command must not stop the only writer
        _LOG.exception("A command failed in a way nobody foresaw")
        _fail(job, error)
        return None
    child.merge()
    return (result,)


def succeed(job: Job, result: object) -> None:
    """Let whoever waits for a job hear what its command gave."""
    if not job.answer.done():
        job.answer.set_result(result)


def fail_all(jobs: list[Job], error: Exception) -> None:
    """Let all who wait for these jobs hear the same error."""
    for job in jobs:
        _fail(job, error)


def _fail(job: Job, error: Exception) -> None:
    if not job.answer.done():
        job.answer.set_exception(error)
