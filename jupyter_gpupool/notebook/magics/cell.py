"""What a kernel and a worker say to each other about a cell. Loaded on both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell to run on a worker.

    Attributes:
        id: Unique; by it the cell is interrupted and its output told apart.
        topic: Under which the worker tells what the cell prints.
        notebook: Whose variables it sees: those its earlier cells left on that worker.
        label: Its file's name in tracebacks.
        outs: Names of variables to send back.
    """

    id: str
    topic: str
    notebook: str
    source: str
    label: str
    outs: Sequence[str] = ()


class Stream(StrEnum):
    """Where a cell prints to."""

    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """What ended a cell early.

    Attributes:
        kind: The exception's class.
        traceback: As Python prints it, from the cell's own frame on.
    """

    kind: str
    text: str
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a cell ended.

    Attributes:
        spoken: How many messages of output it sent before.
        shown: Its last expression by MIME type, as a notebook displays it; empty for None.
        raised: None if it ran to its end.
        outs: The variables asked for, pickled.
        problem: One sentence on a variable that could not be passed, else "".
    """

    spoken: int = 0
    shown: Mapping[str, str] = field(default_factory=dict)
    raised: Raised | None = None
    outs: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    problem: str = ""
