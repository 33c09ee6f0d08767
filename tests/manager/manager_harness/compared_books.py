"""Books that are kept between passes, set against books made anew for each of them."""

from dataclasses import replace

from jupyter_gpupool.manager.service.kept_pool import KeptPool, Passed
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.scheduling.decisions import Decisions, Waiting
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.steps import Steps


class ComparedBooks(KeptPool):
    """Sees of each pass whether it decides what one over new books would.

    Attributes:
        differences: Passes that did not, with what the other one decided.
    """

    def __init__(self) -> None:
        super().__init__()
        self.differences: list[tuple[Decisions, Decisions]] = []

    def decide(self, view: PoolView, steps: Steps, *, explain: bool) -> Passed:
        """Take a pass, and compare it."""
        passed = super().decide(view, steps, explain=explain)
        # Usage is as old as the books say: that is all in which they may differ.
        anew = plan(replace(view, usage=self.usage or view.usage), steps)
        if _acts(passed.decided) != _acts(anew) or (
            explain and _told(passed.decided) != _told(anew)
        ):
            self.differences.append((passed.decided, anew))
        return passed


def _told(decided: Decisions) -> dict[ClaimId, Waiting]:
    return {wait.claim_id: wait for wait in decided.waits}


def _acts(decided: Decisions) -> Decisions:
    """What is done; who of two is granted something first, in one pass, makes no difference."""
    grants = tuple(sorted(decided.grants, key=lambda grant: grant.claim_id))
    return replace(decided, grants=grants, waits=(), unfinished=False)
