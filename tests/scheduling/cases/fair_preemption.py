"""Which claims end so that one more fits, where queues lend to each other what they do not use.

Parents of a case that nobody describes bring in nothing. Every admitted claim was granted at the
same moment, so that names decide between equals, as they do there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cases.outcome import Outcome, compared

from jupyter_gpupool.scheduling.amounts import NO_LIMIT, Amount
from jupyter_gpupool.scheduling.ending_loans import (
    Ground,
    Terms,
    Whose,
    at_most_final_share,
    less_than_initial_share,
    loans_to_end,
)
from jupyter_gpupool.scheduling.lending import Account, LendingBooks
from jupyter_gpupool.scheduling.lending_turns import Holding

_SCALE = 1000
"""Cases have cores with fractions; amounts are whole."""

_WHOSE = {
    "Never": Whose.NOBODYS,
    "LowerPriority": Whose.LOWER_PRIORITY,
    "LowerOrNewerEqualPriority": Whose.LOWER_PRIORITY_OR_YOUNGER,
    "Any": Whose.ANYBODYS,
}
_RULES = {
    "LessThanOrEqualToFinalShare": at_most_final_share,
    "LessThanInitialShare": less_than_initial_share,
}
_WHY = {
    Ground.PRIORITY: "priority_inside_queue",
    Ground.LENDER: "lender_takes_back_quota",
    Ground.FAIRNESS: "fairness",
}


def run(case: Mapping[str, Any]) -> Outcome:
    """Find who gives back, and compare names and grounds."""
    given = case["input"]
    kinds = sorted({kind for node in _nodes(given).values() for kind in _terms(node)})
    books = LendingBooks(_accounts(given, kinds), _resources(kinds))
    default = str(given.get("flavor", "default"))
    admitted = [_holding(job, kinds, default) for job in given["admitted"]]
    for holding in admitted:
        books.use(holding.queue, holding.amount)
    claimant = _holding(given["incoming"], kinds, default)
    ended = loans_to_end(books, admitted, claimant, _own_terms(given, claimant.queue))
    wanted = {victim["job"]: victim["why"] for victim in case["expect"]["victims"]}
    found = {one.holding.claim: _WHY[one.ground] for one in ended}
    return compared(found=found, expected=wanted)


def _nodes(given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    nodes = {node["name"]: node for node in [*given["parents"], *given["queues"]]}
    for node in list(nodes.values()):
        if (parent := node.get("parent")) is not None:
            nodes.setdefault(parent, {"name": parent})
    return nodes


def _terms(node: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {
        (flavour, resource): terms
        for flavour, resources in node.get("quota", {}).items()
        for resource, terms in resources.items()
    }


def _accounts(given: Mapping[str, Any], kinds: list[tuple[str, str]]) -> Iterator[Account]:
    for name, node in _nodes(given).items():
        terms = _terms(node)

        def amount(
            term: str, default: int, terms: Mapping[tuple[str, str], Mapping[str, Any]] = terms
        ) -> Amount:
            values = (terms.get(kind, {}).get(term) for kind in kinds)
            return tuple(default if value is None else round(_SCALE * value) for value in values)

        yield Account(
            name=name,
            parent=node.get("parent"),
            own=amount("nominal", 0),
            weight=node.get("weight", 1),
            lends=amount("lending_limit", NO_LIMIT),
            borrows=amount("borrowing_limit", NO_LIMIT),
        )


def _resources(kinds: list[tuple[str, str]]) -> list[tuple[str, tuple[int, ...]]]:
    """Flavours of one resource compete together."""
    return [
        (resource, tuple(at for at, kind in enumerate(kinds) if kind[1] == resource))
        for resource in sorted({resource for _, resource in kinds})
    ]


def _holding(job: Mapping[str, Any], kinds: list[tuple[str, str]], default: str) -> Holding:
    flavour = job.get("flavor", default)
    asked = {(flavour, resource): amount for resource, amount in job["request"].items()}
    return Holding(
        claim=job["name"],
        queue=job["queue"],
        amount=tuple(round(_SCALE * asked.get(kind, 0)) for kind in kinds),
        priority=job.get("priority", 0),
    )


def _own_terms(given: Mapping[str, Any], queue: str) -> Terms:
    own = _nodes(given)[queue].get("preemption", {})
    return Terms(
        within=_WHOSE[own.get("within_queue", "Never")],
        across=_WHOSE[own.get("reclaim_in_cohort", "Never")],
        rules=tuple(_RULES[name] for name in given.get("strategies") or _RULES),
    )
