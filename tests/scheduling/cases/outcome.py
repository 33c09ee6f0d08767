"""What became of one case: it passed, it differs, or it has nothing to do with our rules."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a case says of our rules."""

    PASSED = "passed"
    DIFFERS = "differs"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict and, unless it passed, what differs or why it does not apply."""

    verdict: Verdict
    text: str = ""


PASSED = Outcome(Verdict.PASSED)


def compared(*, found: object, expected: object) -> Outcome:
    """Pass if both are equal, else show both."""
    if found == expected:
        return PASSED
    return Outcome(Verdict.DIFFERS, f"expected {expected}, found {found}")
