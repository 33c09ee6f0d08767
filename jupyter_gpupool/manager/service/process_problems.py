"""What a host's report says of processes that run but do not work as they should: pure.

Called by `hosts.py` for each claim that has processes on the host.
"""

from collections.abc import Iterable, Iterator

from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.claim_events import ProblemsChanged
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.process_problem import SCHEDULER, ProcessProblem
from jupyter_gpupool.protocol.link import ProcessPhase, SchedulerReport, WorkerReport

_MOST_TEXT = 500
_ALL_WELL = "All its processes can work again."


def problems_changed(
    claim: Claim,
    leases: Iterable[Lease],
    scheduler: SchedulerReport | None,
    workers: Iterable[WorkerReport],
) -> ProblemsChanged | None:
    """What a report changes in what is known to be wrong; None if it changes nothing.

    Args:
        claim: It runs.
        leases: Those it holds, on any host.
        scheduler: What the report says of its scheduler; None if that is another host's to say.
        workers: What the report says of its workers.
    """
    held = {SCHEDULER, *(lease.id for lease in leases)}
    told: dict[str, SchedulerReport | WorkerReport] = {each.lease_id: each for each in workers}
    if scheduler is not None:
        told[SCHEDULER] = scheduler
    kept = [each for each in claim.problems if each.process in held and each.process not in told]
    fresh = [each for name in told.keys() & held for each in _problem(name, told[name])]
    # In an order that does not depend on which host spoke last.
    after = tuple(sorted([*kept, *fresh], key=lambda it: (it.process != SCHEDULER, it.process)))
    if after == claim.problems:
        return None
    return ProblemsChanged(reason=after[0].text if after else _ALL_WELL, problems=after)


def _problem(process: str, report: SchedulerReport | WorkerReport) -> Iterator[ProcessProblem]:
    # In any other phase it says why the process has gone or will go, which has its own events.
    if report.phase is ProcessPhase.RUNNING and report.problem:
        yield ProcessProblem(process=process, text=report.problem[:_MOST_TEXT])
