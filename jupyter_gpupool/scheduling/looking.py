"""A look at who could be served, in several goes if it takes long.

Made by `kept_books` before it serves anybody. A look changes nothing: it may be given up at any
point where it rests.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.ids import ClaimId

from .beside import who_might
from .kept import Kept

if TYPE_CHECKING:
    from .ledger import Member

_A_PROBE = 4
"""Seeing whether a claim fits beside what is kept costs so many looks."""

_REST_EVERY = 64


class Looking:
    """One look after the other, each with a rest whenever it has taken enough effort.

    Attributes:
        fitting: Who fits, each for itself, once a look is done.
        is_spent: The last go took so much effort that whatever else there is to do can wait.

    Args:
        look: Begins a look; yields what effort each part of it took, in claims looked at.
        effort: How much of it a go takes; None for all. After each look that was given up it is
            doubled, so that one comes to its end however much happens.
    """

    def __init__(self, look: Callable[[], Iterator[int]], effort: int | None) -> None:
        self._look, self._effort = look, effort
        self._running: Iterator[int] | None = None
        self._given_up = 0
        self.is_done, self.is_spent = True, False
        self.fitting: list[Member] = []

    def stop(self) -> None:
        """What was seen so far may no longer be so."""
        if self._running is not None:
            self._running.close()  # type: ignore[attr-defined] # a generator
            self._running = None
            self._given_up += 1

    def go_on(self) -> bool:
        """Look on; whether all is seen."""
        self._running = self._running or self._look()
        most = None if self._effort is None else self._effort << min(self._given_up, 16)
        self.is_done, spent = False, 0
        for effort in self._running:
            spent += effort
            if most is not None and spent >= most:
                self.is_spent = True
                return False
        self._running, self._given_up, self.is_done = None, 0, True
        self.is_spent = self._effort is not None and spent > self._effort // 4
        return True

    def narrow(self, kept: Kept) -> Iterator[int]:
        """Leave out whoever has no room beside what is kept."""
        might = set[ClaimId]()
        kept.reopen()
        try:
            for number, member in enumerate(self.fitting, 1):
                if kept.might_place(member, member.needs):
                    might.add(member.view.id)
                if number % _REST_EVERY == 0:
                    yield _REST_EVERY * _A_PROBE
        finally:
            kept.close()
        self.fitting = who_might(kept, self.fitting, might)
