"""`%%gpupool`: takes a cell to a worker and brings back what it showed. Called by `cell_command`.

Loads Dask.
"""

# mypy: allow-untyped-calls
# IPython types only some of what it offers.

import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_gpupool.notebook.this_kernel import this_kernel
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import parse_duration

from .cell import Cell, Outcome, Stream
from .failures import CellFailed, Interrupted
from .holding import Held
from .passing import CannotPass, pack, unpack
from .places import Place, place_of
from .remote import RemoteCell

_HERE = "in this notebook"
_INTERRUPTED = KeyboardInterrupt.__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the cell's first line asks for.

    Attributes:
        worker: Its number or name; None is the one of the last cell.
        timeout: In a user's words; None is for ever.
    """

    source: str
    worker: str | None
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    timeout: str | None


class Shown:
    """A value that stayed on its worker: what a notebook shows of it."""

    def __init__(self, by_type: Mapping[str, str]) -> None:
        self._by_type = by_type

    def _repr_mimebundle_(self, **_wanted: object) -> Mapping[str, str]:
        return self._by_type

    def __repr__(self) -> str:
        return self._by_type["text/plain"]


def run_there(held: Held, on: str | None, wish: Wish) -> Shown | None:
    """Run a cell on a worker, bind the variables it brings back, and return its value.

    Raises:
        PoolError: If it cannot run, or a variable cannot be passed.
        CellFailed: If it raised an error.
        Interrupted: If the user stopped it.
    """
    limit_s = None if wish.timeout is None else _seconds(wish.timeout)
    place = place_of(held, on, wish.worker)
    try:
        outcome = _run(held, place, wish, limit_s)
        _check(outcome, place)
        held.shell.push(unpack(outcome.outs, _HERE))
    except CannotPass as problem:
        raise BadRequest(str(problem)) from problem
    return Shown(outcome.shown) if outcome.shown else None


def _run(held: Held, place: Place, wish: Wish, limit_s: float | None) -> Outcome:
    ins = pack(wish.ins, held.shell.user_ns, _HERE)
    remote = RemoteCell(place, _cell(held, place, wish), _tell)
    try:
        return remote.run(ins, limit_s)
    finally:
        if remote.has_ended_worker:
            held.ended_workers.add(place.address)


def _cell(held: Held, place: Place, wish: Wish) -> Cell:
    cell_id = uuid.uuid4().hex
    return Cell(
        id=cell_id,
        topic=f"gpupool-cells-{place.client.id}",
        notebook=this_kernel().id,
        source=wish.source,
        label=f"<gpupool cell {held.shell.execution_count}>",
        outs=wish.outs,
    )


def _check(outcome: Outcome, place: Place) -> None:
    if outcome.raised is not None:
        if outcome.raised.kind == _INTERRUPTED:
            raise Interrupted(outcome.raised)
        raise CellFailed(outcome.raised, place.worker)
    if outcome.problem:
        raise BadRequest(outcome.problem)


def _tell(stream: Stream, text: str) -> None:
    target = sys.stdout if stream is Stream.STDOUT else sys.stderr
    target.write(text)
    target.flush()


def _seconds(timeout: str) -> float:
    return parse_duration(timeout, field="timeout").total_seconds()
