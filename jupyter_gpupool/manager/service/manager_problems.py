"""What is wrong with the manager itself although it works: pure.

Told in its log at the start, by `/health` to whoever asks, and with the details to admins.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from .in_force import PolicyInForce
from .pass_failures import PassFailures


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerProblem:
    """One of them.

    Attributes:
        text: A sentence that tells nothing of any user or queue.
        detail: What else an admin needs to mend it.
    """

    text: str
    detail: str


def problems_of(policy: PolicyInForce, failures: PassFailures) -> tuple[ManagerProblem, ...]:
    """All there are now, what is to be mended first."""
    return (*refused_policy(policy), *_failed_passes(failures))


def refused_policy(policy: PolicyInForce) -> Iterator[ManagerProblem]:
    """That another policy should be in force, if one should."""
    if policy.refused is None:
        return
    holds = f"revision {policy.revision}" if policy.revision else "the default"
    yield ManagerProblem(
        text=(
            f"Revision {policy.refused.revision} of the policy is refused by this version of the"
            f" manager, so {holds} is in force."
        ),
        detail=f"{policy.refused.why} Apply a corrected one: jupyter gpupool policy apply FILE.",
    )


def _failed_passes(failures: PassFailures) -> Iterator[ManagerProblem]:
    if failures.text:
        detail = f"{failures.why}. The manager's log has the whole; please report it."
        yield ManagerProblem(text=failures.text, detail=detail)
