"""The weighted dominant share of every queue above its guarantee.

A case counts each resource by flavour, as we count devices by model. Parents there are promised
what their children are, and their own on top; a lending limit keeps a part of a queue's guarantee
out of its parent's sight.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from cases.outcome import Outcome, compared

from jupyter_gpupool.scheduling.amounts import NO_LIMIT, Amount, add
from jupyter_gpupool.scheduling.dominance import (
    NOTHING_BORROWED,
    DominantShare,
    dominant_share,
    lendable_below,
)
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.queues import Queue, QueueTree

_SCALE = 1000
"""Cases have cores with fractions; amounts are whole."""

_PLACES = 9
"""Decimals of a permille that count: a quotient of two integers may end in dust."""


def run(case: Mapping[str, Any]) -> Outcome:
    """Compute all shares the case lists, and compare."""
    pool = _Pool(case["input"])
    expected = [dict(share) for share in case["expect"]["shares"]]
    found = [_shown(name, pool.share(name)) for name in (share["node"] for share in expected)]
    return compared(found=found, expected=expected)


def _shown(name: str, share: DominantShare) -> dict[str, Any]:
    permille = "inf" if share.weightless else ceil(round(1000 * share.ratio, _PLACES))
    kind = share.kind or None
    return {"node": name, "share_permille": permille, "dominant": kind, "borrowing": share.borrows}


class _Pool:
    """One case, its (flavour, resource) pairs as kinds."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        named = {node["name"]: node for node in [*given["parents"], *given["queues"]]}
        for node in list(named.values()):
            if (parent := node.get("parent")) is not None:
                named.setdefault(parent, {"name": parent, "quota": {}})
        self.nodes = named
        self.kinds = sorted(
            {(flavour, kind) for node in named.values() for flavour, kind, _ in _terms(node)}
        )
        self.tree = self._tree()
        used, more = self._counted(given["usage"]), self._counted(given["hypothetical_extra"])
        self.held = self._held(given["usage_of"], add(used, more))

    def share(self, name: str) -> DominantShare:
        """Compute the share of one node; the top one borrows from nobody."""
        queue = self.tree.queues[name]
        if queue.parent is None:
            return NOTHING_BORROWED
        resources = sorted({resource for _, resource in self.kinds})
        places = [
            (resource, tuple(at for at, kind in enumerate(self.kinds) if kind[1] == resource))
            for resource in resources
        ]
        capacity = self.tree.queues[self.tree.path(name)[-1]].guarantee
        return dominant_share(
            held=self.held.get(name, (0,) * len(self.kinds)),
            guarantee=queue.guarantee,
            lendable=lendable_below(self.tree, capacity, queue.parent),
            weight=queue.weight,
            of=places,
        )

    def _counted(self, amounts: list[Mapping[str, Any]]) -> Amount:
        of = {(each["flavor"], each["resource"]): each["amount"] for each in amounts}
        return tuple(round(_SCALE * of.get(kind, 0)) for kind in self.kinds)

    def _term(self, name: str, term: str) -> list[int | None]:
        values = {(f, r): terms.get(term) for f, r, terms in _terms(self.nodes[name])}
        scaled = (values.get(kind) for kind in self.kinds)
        return [None if value is None else round(_SCALE * value) for value in scaled]

    def _tree(self) -> QueueTree:
        guarantees: dict[str, Amount] = {}
        for name in self.nodes:
            self._promise(name, guarantees)
        queues = [self._queue(name, guarantees[name]) for name in self.nodes]
        return grow(tuple(f"{resource} {flavour}" for flavour, resource in self.kinds), queues)

    def _promise(self, name: str, known: dict[str, Amount]) -> Amount:
        """Add up what a node is promised: its own, and what each child lends it."""
        if name not in known:
            parts = [tuple(value or 0 for value in self._term(name, "nominal"))]
            for child in (n for n, node in self.nodes.items() if node.get("parent") == name):
                lends = zip(self._promise(child, known), self._lending(child), strict=True)
                parts.append(tuple(min(pair) for pair in lends))
            known[name] = tuple(map(sum, zip(*parts, strict=True)))
        return known[name]

    def _lending(self, name: str) -> list[int]:
        return [NO_LIMIT if most is None else most for most in self._term(name, "lending_limit")]

    def _queue(self, name: str, guarantee: Amount) -> Queue:
        borrowing = zip(guarantee, self._term(name, "borrowing_limit"), strict=True)
        return Queue(
            name=name,
            parent=self.nodes[name].get("parent"),
            guarantee=guarantee,
            weight=self.nodes[name].get("weight", 1),
            limit=tuple(NO_LIMIT if more is None else own + more for own, more in borrowing),
        )

    def _held(self, name: str, amount: Amount) -> dict[str, Amount]:
        """Carry what a queue holds up the tree, less what its lending limits keep from sight."""
        held = {}
        for step in self.tree.path(name):
            held[step] = amount
            own = zip(self.tree.queues[step].guarantee, self._lending(step), strict=True)
            hidden = [max(0, guarantee - most) for guarantee, most in own]
            amount = tuple(max(0, a - b) for a, b in zip(amount, hidden, strict=True))
        return held


def _terms(node: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    return [
        (flavour, resource, terms)
        for flavour, resources in node.get("quota", {}).items()
        for resource, terms in resources.items()
    ]
