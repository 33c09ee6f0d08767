"""What keeps a process of a claim from its work although it runs: one was stopped, say.

Told by the agent of its host with each report, kept with the claim until a report says it no more.
"""

from dataclasses import dataclass

SCHEDULER = "scheduler"
"""How a claim's scheduler is named among its processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessProblem:
    """A process that runs but does not work as it should.

    Attributes:
        process: SCHEDULER, or its lease's id.
        text: One sentence that its user can read, with what to do.
    """

    process: str
    text: str
