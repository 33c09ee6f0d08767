"""What a tree of queues must satisfy, each refused in one sentence with its name and numbers.

`grow` is the only door from outside to a `QueueTree`; `check_guarantees` is asked in addition when
a policy is applied, for the division itself accepts more guarantees than devices: hosts die. Both
refuse for the first reason; `refusals_of_queues` and `refusals_of_guarantees` tell them all.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.scheduling.amounts import (
    NO_LIMIT,
    Amount,
    Kinds,
    fits,
    minimum,
    no_limit,
    whole_unit,
)
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, link

_LARGEST_WEIGHT: Final = 1_000_000
_PER_USER: Final = {
    "devices": "gpus",
    "claims": "claims",
    "budget_s": "gpu_hours",
    "period_s": "period",
}
_DEEPEST: Final = 64
"""Levels of queues: more than an organisation has, and shallow enough to be walked by recursion."""


def grow(kinds: Kinds, queues: Iterable[Queue]) -> QueueTree:
    """Check queues and join them to a tree.

    Raises:
        BadRequest: A name is empty or given twice, a parent is unknown, parents form a circle or
            too long a chain, an amount has the wrong length, a number is negative or no weight, a
            guarantee is above its limit.
    """
    given = tuple(queues)
    for refusal in refusals_of_queues(kinds, given):
        raise refusal
    return link(kinds, given)


def refusals_of_queues(kinds: Kinds, queues: Sequence[Queue]) -> Iterator[BadRequest]:
    """Why `grow` would refuse queues: names first, then parents, then each queue's first number."""
    try:
        _check_names(queues)
    except BadRequest as error:
        # Without names nothing else can be said of a queue.
        yield error
        return
    yield from _wrong_parents({queue.name: queue.parent for queue in queues})
    yield from (wrong for queue in queues if (wrong := _wrong_number(kinds, queue)) is not None)


def check_guarantees(tree: QueueTree, capacity: Amount | None) -> None:
    """Refuse guarantees that together are more than what they are taken from.

    A guarantee without limit counts as all that its parent has. Without a known capacity, queues
    are checked against their parents alone.

    Raises:
        BadRequest: Those of a queue's children exceed its own, or those at the top the capacity.
    """
    for refusal in refusals_of_guarantees(tree, capacity):
        raise refusal


def refusals_of_guarantees(tree: QueueTree, capacity: Amount | None) -> Iterator[BadRequest]:
    """Why `check_guarantees` would refuse: one for each queue whose children have too much."""
    has: dict[str | None, Amount] = {None: no_limit(tree.kinds) if capacity is None else capacity}
    for parent in (None, *tree.top_down):
        if not (below := tree.children[parent]):
            continue
        for name in below:
            has[name] = _bounded(tree.queues[name].guarantee, has[parent])
        total = tuple(map(sum, zip(*(has[name] for name in below), strict=True)))
        total = minimum(total, no_limit(tree.kinds))
        if not fits(total, has[parent]):
            # Of those at the top, the one that is guaranteed most is where to look first.
            at = max(below, key=lambda name: has[name]) if parent is None else parent
            said = _too_much(tree, parent, total, has[parent])
            yield BadRequest(said, field=_key(at, "guarantee"))


def _bounded(guarantee: Amount, available: Amount) -> Amount:
    both = zip(guarantee, available, strict=True)
    return tuple(most if own >= NO_LIMIT else own for own, most in both)


def _too_much(tree: QueueTree, parent: str | None, total: Amount, available: Amount) -> str:
    per_kind = zip(tree.kinds, total, available, strict=True)
    kind, wanted, there = next(entry for entry in per_kind if entry[1] > entry[2])
    owner = (
        "the pool has" if parent is None else f'the {_bound(tree, parent, kind)} of "{parent}" is'
    )
    names = ", ".join(f'"{name}"' for name in tree.children[parent])
    promised = f"The guarantees of {names} add up to {_shown(kind, wanted)}"
    return f"{promised}, but {owner} {_shown(kind, there)}."


def _bound(tree: QueueTree, queue: str, kind: str) -> str:
    """What keeps a queue from more: a guarantee that is not said is cut by its limit alone."""
    at, found = tree.kinds.index(kind), tree.queues[queue]
    return "limit" if found.guarantee[at] == found.limit[at] else "guarantee"


def _shown(kind: str, value: int) -> str:
    match kind:
        case "cpu":
            return f"{value / 1000:g} cores"
        case "memory":
            return f"{value / 2**30:g} GiB"
        case _:
            return f"{value / whole_unit(kind):g} {kind.replace(':', ' ')}"


def _key(queue: str, *terms: str) -> str:
    """Where an admin finds it in the document."""
    return ".".join(("queues", queue, *terms))


def _check_names(queues: Sequence[Queue]) -> None:
    seen: set[str] = set()
    for queue in queues:
        if not queue.name:
            raise BadRequest("A queue has no name.", field="queues")
        if "/" in queue.name and queue.user is None:
            slash = "a slash, which stands between a queue and its user"
            raise BadRequest(
                f'The name of queue "{queue.name}" has {slash}.', field=_key(queue.name)
            )
        if queue.name in seen:
            raise BadRequest(f'There are two queues named "{queue.name}".', field=_key(queue.name))
        seen.add(queue.name)


def _wrong_parents(parents: dict[str, str | None]) -> Iterator[BadRequest]:
    unknown = [name for name, at in parents.items() if at is not None and at not in parents]
    for name in unknown:
        said = f'The parent "{parents[name]}" of queue "{name}" is unknown.'
        yield BadRequest(said, field=_key(name, "parent"))
    if unknown:
        return
    try:
        _check_no_circle(parents)
        _check_depth(parents)
    except BadRequest as error:
        yield error


def _check_no_circle(parents: dict[str, str | None]) -> None:
    # Whatever leads to the top is sound; each walk stops at what earlier ones have proven.
    sound: set[str | None] = {None}
    for start in sorted(parents):
        walk: list[str] = []
        step: str | None = start
        while step is not None and step not in sound:
            if step in walk:
                circle = " in ".join(f'"{name}"' for name in [*walk[walk.index(step) :], step])
                at = _key(step, "parent")
                raise BadRequest(f"Queues stand in a circle: {circle}.", field=at)
            walk.append(step)
            step = parents[step]
        sound.update(walk)


def _check_depth(parents: dict[str, str | None]) -> None:
    levels: list[set[str | None]] = [{None}]
    while below := {name for name, parent in parents.items() if parent in levels[-1]}:
        levels.append(set(below))
        if len(levels) - 1 > _DEEPEST:
            name = min(below)
            why = f"stands more than {_DEEPEST} levels deep, which is the most there may be"
            raise BadRequest(f'Queue "{name}" {why}.', field=_key(name, "parent"))


def _wrong_number(kinds: Kinds, queue: Queue) -> BadRequest | None:
    for rule in _RULES:
        if (wrong := rule(kinds, queue)) is not None:
            term, sentence = wrong
            said = f'Queue "{queue.name}" has {sentence}.'
            return BadRequest(said, field=_key(queue.name, term))
    return None


def _wrong_length(kinds: Kinds, queue: Queue) -> tuple[str, str] | None:
    for field, amount in (("guarantee", queue.guarantee), ("limit", queue.limit)):
        if len(amount) != len(kinds):
            return field, f"a {field} of {len(amount)} numbers for {len(kinds)} resources"
    return None


def _negative_amount(kinds: Kinds, queue: Queue) -> tuple[str, str] | None:
    for field, amount in (("guarantee", queue.guarantee), ("limit", queue.limit)):
        for kind, value in zip(kinds, amount, strict=True):
            if value < 0:
                return field, f"a negative {field} of {_shown(kind, value)}"
    return None


def _guarantee_above_limit(kinds: Kinds, queue: Queue) -> tuple[str, str] | None:
    for kind, own, most in zip(kinds, queue.guarantee, queue.limit, strict=True):
        if most < own < NO_LIMIT:
            shown = f"{_shown(kind, own)} above its limit of {_shown(kind, most)}"
            return "guarantee", f"a guarantee of {shown}"
    return None


def _unusable_weight(kinds: Kinds, queue: Queue) -> tuple[str, str] | None:
    del kinds
    if 0 <= queue.weight <= _LARGEST_WEIGHT:
        return None
    return "weight", f"a weight of {queue.weight:g}; it must be from 0 to {_LARGEST_WEIGHT}"


def _negative_time(kinds: Kinds, queue: Queue) -> tuple[str, str] | None:
    del kinds
    times = {
        "min_runtime": queue.reclaim_min_runtime_s,
        "own_min_runtime": queue.own_min_runtime_s,
    }
    for term, seconds in times.items():
        if seconds is not None and not seconds >= 0:
            return term, f"a minimum runtime of {seconds:g} s; it must be 0 or more"
    return None


def _negative_user_limit(kinds: Kinds, queue: Queue) -> tuple[str, str] | None:
    del kinds
    for field, term in _PER_USER.items():
        limit: int | None = getattr(queue.user_limits, field)
        if limit is not None and limit < 0:
            said = f"a limit of {limit} {field} per user; it must be 0 or more"
            return f"per_user.{term}", said
    return None


_RULES: Final[tuple[Callable[[Kinds, Queue], tuple[str, str] | None], ...]] = (
    _wrong_length,
    _negative_amount,
    _guarantee_above_limit,
    _unusable_weight,
    _negative_time,
    _negative_user_limit,
)
