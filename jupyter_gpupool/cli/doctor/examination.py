"""Runs all checks at once, each on a thread of its own, and waits no longer than a few seconds.

Called by `command`. The threads are daemons: a check that hangs, on a dead network disk or in a
driver, is told as one that could not look, and holds up neither the others nor the end.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from jupyter_gpupool.pool.errors import PoolError

from .checks import CHECKS
from .concealing import conceal
from .finding import Finding, problem, unknown
from .pool_view import look_at_pool
from .sight import Check, Group, Sight

_T = TypeVar("_T")
WITHIN_S = 4.5
"""With the time that Python takes to start, five seconds for whoever waits."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one check found."""

    group: Group
    finding: Finding


def examine(
    environ: Mapping[str, str], checks: Sequence[Check] = CHECKS, *, within_s: float = WITHIN_S
) -> tuple[Told, ...]:
    """Everything that was found, in the order of the checks, without secrets."""
    deadline = time.monotonic() + within_s
    sight = Sight(environ, _start("pool", lambda: look_at_pool(environ)))
    answers = [_start(check.name, partial(_look, check, sight)) for check in checks]
    told = []
    for check, answer in zip(checks, answers, strict=True):
        found = _wait(check, answer, deadline)
        told += [Told(check.group, conceal(each, environ)) for each in found]
    return tuple(told)


def _look(check: Check, sight: Sight) -> Sequence[Finding]:
    return tuple(check.look(sight))


def _wait(check: Check, answer: Future[Sequence[Finding]], deadline: float) -> Sequence[Finding]:
    try:
        return answer.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        what = f"The check {check.name} did not end in time."
        mend = "Look for a disk, a driver or a name server that does not answer, then look again."
    except PoolError as error:
        return (problem(check.name, error.message, error.hint or "Mend what the sentence names."),)
    except Exception as error:  # noqa: BLE001 - however odd this machine is, other checks can look
        why = f"{type(error).__name__}: {error}".rstrip(".: ")
        what = f"The check {check.name} could not look: {why}."
        mend = "Mend what the sentence names, or report it."
    return (unknown(check.name, what, mend),)


def _start(name: str, work: Callable[[], _T]) -> Future[_T]:
    """Begin on a thread of its own, which may be left behind when it hangs."""
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True, name=f"gpupool doctor {name}").start()
    return answer
