"""What all checks are given: the user's environment, and the pool as it was found."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum

from jupyter_gpupool.client.discovery import URL
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.units import format_duration

from .finding import Finding
from .pool_view import PoolView

POOL_WITHIN_S = 3.8


class Group(Enum):
    """What a finding is about; the value is a heading."""

    POOL = "Pool"
    DEVICES = "Devices"
    PYTHON = "Python"
    JUPYTER = "Jupyter"
    FILES = "Files"
    MACHINE = "Machine"


@dataclass(frozen=True, slots=True)
class Sight:
    """What one examination sees.

    Attributes:
        pool: Known as soon as the pool has answered, or has been silent for too long.
    """

    environ: Mapping[str, str]
    pool: Future[PoolView]

    def view(self) -> PoolView:
        """The pool, or that it was silent; a little before the examination ends."""
        try:
            return self.pool.result(POOL_WITHIN_S)
        except TimeoutError:
            silent = Unavailable(
                f"The pool did not answer within {format_duration(POOL_WITHIN_S)}.",
                hint="See whether its manager runs, and how busy this machine and the network are.",
            )
            return PoolView(error=silent)

    @property
    def is_pool_named(self) -> bool:
        """Whether the user works with a pool that others run, and needs none of their own."""
        return bool(self.environ.get(URL, "").strip())


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at, on its own thread.

    Attributes:
        name: In kebab case, for what is said when it could not look.
    """

    group: Group
    name: str
    look: Callable[[Sight], Iterable[Finding]]
