"""What became of each claim of a simulation, and the numbers that are asked of it.

Made by `replay`; `report` renders it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from jupyter_gpupool.pool.ids import ClaimId


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The course of one claim; all times are seconds of the simulation.

    Attributes:
        duration_s: For how long it needed its devices.
        started_s: When it first held them.
        hibernations: How often it was hibernated and resumed, moves included.
    """

    claim_id: ClaimId
    queue: str
    asked_s: float
    started_s: float
    ended_s: float
    duration_s: float
    hibernations: int

    @property
    def completion_s(self) -> float:
        """From its request to its end."""
        return self.ended_s - self.asked_s

    @property
    def wait_s(self) -> float:
        """All the time in which it did not get on: before its start, hibernated, resuming."""
        return self.completion_s - self.duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of all claims.

    Attributes:
        courses: In the order of their ends.
        unfinished: Claims that were released before they were done, or never got what they need.
        passes: How many passes were taken.
    """

    courses: tuple[Course, ...]
    unfinished: tuple[ClaimId, ...]
    passes: int

    def of(self, queue: str) -> "Outcome":
        """The same for the claims of one queue alone."""
        courses = tuple(course for course in self.courses if course.queue == queue)
        return Outcome(courses=courses, unfinished=(), passes=self.passes)

    @property
    def mean_completion_s(self) -> float:
        """Raises ZeroDivisionError if nothing ended."""
        return sum(course.completion_s for course in self.courses) / len(self.courses)

    @property
    def hibernations_per_claim(self) -> float:
        """Raises ZeroDivisionError if nothing ended."""
        return sum(course.hibernations for course in self.courses) / len(self.courses)

    def wait_s(self, quantile: float) -> float:
        """The wait that this part of all claims stays below or meets, e.g. 0.95.

        Raises:
            IndexError: If nothing ended.
        """
        waits = sorted(course.wait_s for course in self.courses)
        return waits[max(0, ceil(quantile * len(waits)) - 1)]


def jain_index(values: Iterable[float]) -> float:
    """How equal some amounts are: 1 if all are the same, 1/n if one has everything.

    Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.

    Raises:
        ZeroDivisionError: If there are none, or all are zero.
    """
    amounts: Sequence[float] = tuple(values)
    return sum(amounts) ** 2 / (len(amounts) * sum(amount**2 for amount in amounts))
