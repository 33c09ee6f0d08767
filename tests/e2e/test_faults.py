"""The client, the manager and the agent are killed, paused and frozen at each moment of a claim."""

import pytest
from e2e_harness.fault_case import Stage, play
from e2e_harness.faults import Case, Role, cases
from e2e_harness.seeding import ROUNDS, SEED

_ROLES = (Role.CLIENT, Role.MANAGER, Role.AGENT)


@pytest.mark.parametrize("case", cases(SEED, ROUNDS, _ROLES), ids=str)
def test_struck_service_breaks_no_promise(stage: Stage, case: Case) -> None:
    """Tasks go on or their user is told why; nothing is shared, forgotten or left running."""
    play(stage, case)
