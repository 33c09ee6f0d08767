"""Whole-pool cases: a pool, one step of a pass or passes until all is quiet, each worker's fate."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from applied import applied
from cases.pool_of_case import pool_of

from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import Steps, plan

_STEPS = {
    "allocate_only": Steps.GRANT,
    "consolidation_only": Steps.MOVE,
    "reclaim_only": Steps.RECLAIM,
    "preempt_only": Steps.OUTRANK,
}
_TO_STEADY_STATE = "full_cycle_to_steady_state"
_MOST_PASSES = 20
_QUIET_PASSES = 5


@dataclass(frozen=True, slots=True)
class Fate:
    """What has become of one worker, in the words of the cases."""

    state: str
    host: str | None = None

    def is_as(self, wanted: Mapping[str, Any], *, where: bool) -> bool:
        """Whether it is what a case expects; the host counts if `where`."""
        if self.state != wanted["state"]:
            return False
        return not where or wanted.get("node") in (None, self.host)


_PENDING = Fate("pending")


def run(case: Mapping[str, Any]) -> list[str]:
    """Play a case; the differences from what it expects, empty if there are none."""
    view = pool_of(case["input"])
    if case["phase"] == _TO_STEADY_STATE:
        fates = _steady(view)
    else:
        fates = _after_one_step(view, _STEPS[case["phase"]])
    for claim in view.claims:
        fates[claim.id] += [_PENDING] * (claim.maximum - len(fates[claim.id]))
    expected = case["expect"]
    return [
        *_differing_jobs(expected.get("jobs", {}), fates),
        *_differing_workers(expected.get("workers", {}), fates),
    ]


def _after_one_step(view: PoolView, step: Steps) -> dict[str, list[Fate]]:
    decided, fates = plan(view, step), _held(view)
    for part in (*decided.takes, *decided.moves):
        for worker in part.workers:
            fates[part.claim_id].remove(Fate("running", worker.host_id))
    for take in decided.takes:
        fates[take.claim_id] += [Fate("evicted")] * len(take.workers)
    for grant in decided.grants:
        fates[grant.claim_id] += [Fate("started", worker.host_id) for worker in grant.workers]
    freed = [(promise.claim_id, promise.workers) for promise in decided.promises]
    for claim_id, workers in (*freed, *((move.claim_id, move.to) for move in decided.moves)):
        fates[claim_id] += [Fate("waits_for_freed_gpu", worker.host_id) for worker in workers]
    return fates


def _held(view: PoolView) -> dict[str, list[Fate]]:
    return {c.id: [Fate("running", w.host_id) for w in c.held] for c in view.claims}


def _steady(view: PoolView) -> dict[str, list[Fate]]:
    quiet = 0
    for _ in range(_MOST_PASSES):
        decided = plan(view)
        quiet = quiet + 1 if decided.changes_nothing else 0
        view = applied(view, decided)
        if quiet > _QUIET_PASSES:
            return _held(view)
    return {claim.id: [Fate("never steady")] for claim in view.claims}


def _differing_jobs(
    expected: Mapping[str, Mapping[str, Any]], fates: Mapping[str, Sequence[Fate]]
) -> Iterator[str]:
    for name, wanted in expected.items():
        found = fates[name]
        # The node of a job of several workers is that of one of them.
        if not all(fate.is_as(wanted, where=len(found) == 1) for fate in found):
            yield f"{name}: expected {wanted}, found {list(found)}"


def _differing_workers(
    expected: Mapping[str, Mapping[str, Any]], fates: Mapping[str, Sequence[Fate]]
) -> Iterator[str]:
    for claim, wants in _by_claim(expected, fates).items():
        left = list(fates[claim])
        for wanted in wants:
            fitting = [fate for fate in left if fate.is_as(wanted, where=True)]
            if not fitting:
                yield f"{claim}: expected {wants}, found {fates[claim]}"
                break
            left.remove(fitting[0])


def _by_claim(
    expected: Mapping[str, Mapping[str, Any]], fates: Mapping[str, Sequence[Fate]]
) -> dict[str, list[Mapping[str, Any]]]:
    """Group by claim: a worker is named after it, some with a number more."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for name, wanted in expected.items():
        stem = name.rpartition("-")[0]
        claim = next(c for c in (name, stem, stem.rstrip("0123456789")) if c in fates)
        found.setdefault(claim, []).append(wanted)
    return found
