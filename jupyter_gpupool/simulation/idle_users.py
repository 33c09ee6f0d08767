"""How people use their claims on a day, minute by minute: what they do, and what can be seen of it.

Played against policies by `idle_day`. A day is drawn from a seed and is the same for every policy.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice, repeat
from random import Random
from typing import Final

from jupyter_gpupool.pool.signals import Signal

DAY_MIN: Final = 24 * 60
_GIB: Final = 2**30


class Kind(StrEnum):
    """What a user is like."""

    BUSY = "busy"
    """Trains for hours; sometimes only the kernel is busy, or a function on the workers."""
    BURSTY = "bursty"
    """Tries something, thinks, tries again; goes to lunch and home."""
    FORGETFUL = "forgetful"
    """Works for a while and leaves everything open; some shut the notebook down."""
    HOSTILE = "hostile"
    """Keeps a claim by a loop of tiny tasks, and asks for every minute it may be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """One minute of a claim.

    Attributes:
        works: Whether taking its devices now would be wrong. A loop that only looks like work is
            none.
        reads: Whether its user would read a warning.
        heard: Whether the agent was heard.
        active, unknown: What signals show; all others are quiet.
        peak, mean: Utilisation, in thousandths.
    """

    works: bool = False
    reads: bool = False
    heard: bool = True
    active: frozenset[Signal] = frozenset()
    unknown: frozenset[Signal] = frozenset()
    peak: int = 0
    mean: int = 0
    held_bytes: int = 31 * _GIB
    orphaned: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user with one claim.

    Attributes:
        devices: What it holds.
        day: From midnight on.
    """

    name: str
    kind: Kind
    devices: int
    day: tuple[Minute, ...]

    def returns_within(self, minute: int, minutes: int) -> bool:
        """Whether they will work again soon after a minute of the day."""
        return any(later.works for later in self.day[minute : minute + minutes])


_AT_REST: Final = Minute()
_THINKING: Final = Minute(reads=True)


def people(count: int, seed: int) -> tuple[User, ...]:
    """So many users: three in ten are busy, four bursty, two forgetful, one hostile."""
    kinds = (*(Kind.BUSY,) * 3, *(Kind.BURSTY,) * 4, *(Kind.FORGETFUL,) * 2, Kind.HOSTILE)
    return tuple(_user(number, kinds[number % 10], seed) for number in range(count))


def _user(number: int, kind: Kind, seed: int) -> User:
    draw = Random(f"{seed}/{number}")  # noqa: S311 - a game of chance, and no secret
    minutes = list(islice(_DAYS[kind](draw), DAY_MIN))
    day = [*minutes, *(_AT_REST,) * (DAY_MIN - len(minutes))]
    return User(
        name=f"u{number:03}",
        kind=kind,
        devices=draw.choice((1, 1, 1, 2, 2, 4)),
        day=tuple(_with_outages(day, draw)),
    )


def _busy(draw: Random) -> Iterator[Minute]:
    """All day and night, in jobs of hours that may begin without the devices, with short pauses."""
    while True:
        reads = _happens(draw, 0.3)
        begins = draw.choice((_trains, _trains, _prepares, _calls))
        for work, minutes in ((begins, draw.randint(10, 90)), (_trains, draw.randint(60, 240))):
            yield from (replace(work(draw), reads=reads) for _ in range(minutes))
        yield from (_THINKING,) * draw.randint(0, 12)


def _bursty(draw: Random) -> Iterator[Minute]:
    yield from (_AT_REST,) * draw.randint(8 * 60, 10 * 60)
    yield from _bursts(draw, draw.randint(90, 200))
    yield from (_AT_REST,) * draw.randint(40, 80)
    yield from _bursts(draw, draw.randint(200, 420))


def _bursts(draw: Random, minutes: int) -> Iterator[Minute]:
    """Bursts of work with pauses in which their user thinks, or is in a meeting."""
    while minutes > 0:
        burst, pause = draw.randint(2, 15), draw.choice((1, 3, 5, 8, 12, 18, 35))
        minutes -= burst + pause
        yield from (replace(_trains(draw), reads=True) for _ in range(burst))
        yield from (_THINKING if _happens(draw, 0.8) else _AT_REST,) * pause


def _forgetful(draw: Random) -> Iterator[Minute]:
    """A morning of work, after which everything is left open, or the notebook shut down."""
    yield from (_AT_REST,) * draw.randint(8 * 60, 11 * 60)
    yield from _bursts(draw, draw.randint(60, 200))
    yield from repeat(replace(_AT_REST, orphaned=_happens(draw, 0.3)))


def _hostile(draw: Random) -> Iterator[Minute]:
    """An hour of work, and then the loop until midnight."""
    yield from (_AT_REST,) * draw.randint(7 * 60, 9 * 60)
    yield from (_trains(draw) for _ in range(60))
    while True:
        yield Minute(
            reads=True,
            active=frozenset({Signal.TASKS, Signal.MEMORY}),
            peak=draw.randint(60, 900),
            mean=draw.randint(2, 9),
        )


def _trains(draw: Random) -> Minute:
    mean = draw.randint(200, 950)
    return Minute(
        works=True,
        active=frozenset({Signal.TASKS, Signal.MEMORY}),
        peak=min(1000, mean + draw.randint(0, 400)),
        mean=mean,
    )


def _prepares(draw: Random) -> Minute:
    """A cell that prints nothing and leaves the devices alone; its server is not always heard."""
    heard = _happens(draw, 0.95)
    signal = frozenset({Signal.KERNEL})
    return Minute(
        works=True,
        active=signal if heard else frozenset(),
        unknown=frozenset() if heard else signal,
        mean=draw.randint(0, 20),
        peak=40,
    )


def _calls(draw: Random) -> Minute:
    """A function of `client.run`, which no task knows of."""
    return Minute(
        works=True, active=frozenset({Signal.CALLS}), peak=500, mean=draw.randint(100, 400)
    )


def _with_outages(day: list[Minute], draw: Random) -> Iterator[Minute]:
    """Agents are not heard for a minute now and then, and for longer a few times a day."""
    silent = 0
    for minute in day:
        if not silent and _happens(draw, 0.004):
            silent = draw.choice((1, 1, 1, 2, 5, 30))
        yield replace(minute, heard=False) if silent else minute
        silent = max(0, silent - 1)


def _happens(draw: Random, part: float) -> bool:
    """Whether something comes true that does so this often, 0 to 1."""
    return draw.random() < part


_DAYS: Mapping[Kind, Callable[[Random], Iterator[Minute]]] = {
    Kind.BUSY: _busy,
    Kind.BURSTY: _bursty,
    Kind.FORGETFUL: _forgetful,
    Kind.HOSTILE: _hostile,
}
