"""Which results of a claim could not be kept, and what the others take: asked of its workers.

Used by `hibernation` before anything is moved; `surveying` is the workers' side.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_gpupool.protocol.keeping import Unkept, UnkeptReason

from .surveying import OPERATION

_KEYS_A_QUESTION = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was found.

    Attributes:
        sizes: By key, what a result takes when serialised; those that cannot be kept are left out.
    """

    sizes: Mapping[Any, int]
    unkept: tuple[Unkept, ...]

    @property
    def results(self) -> int:
        """How many there are."""
        return len(self.sizes) + len(self.unkept)

    @property
    def nbytes(self) -> int:
        """What all of them take."""
        return sum(self.sizes.values()) + sum(each.nbytes for each in self.unkept)


async def survey(scheduler: Any, quota_bytes: int | None) -> Survey:
    """Ask about all finished results; what is with the holder is known to be well."""
    holder = scheduler.holder
    tasks = [task for state in scheduler.real_workers for task in state.has_what]
    sizes = {} if holder is None else {task.key: task.get_nbytes() for task in holder.has_what}
    unkept = {task.key: _actor(task) for task in tasks if task.actor}
    known = {*sizes, *unkept}
    answers = await asyncio.gather(
        *(_ask(scheduler, address, keys) for address, keys in _questions(scheduler, known))
    )
    for answer in answers:
        sizes |= answer["bytes"]
        unkept |= {
            key: Unkept(key=str(key), reason=UnkeptReason(reason), detail=detail)
            for key, (reason, detail) in answer["unkept"].items()
        }
    over = beyond(sizes, quota_bytes)
    return Survey(
        sizes={key: size for key, size in sizes.items() if key not in over},
        unkept=(*unkept.values(), *(_too_large(key, sizes[key]) for key in over)),
    )


def beyond(sizes: Mapping[Any, int], quota_bytes: int | None) -> tuple[Any, ...]:
    """The keys that do not fit, the smallest results being kept first. Pure."""
    if quota_bytes is None or sum(sizes.values()) <= quota_bytes:
        return ()
    left, over = quota_bytes, []
    for key in sorted(sizes, key=lambda key: (sizes[key], str(key))):
        left -= sizes[key]
        if left < 0:
            over.append(key)
    return tuple(over)


def _questions(scheduler: Any, known: set[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Each key once, of whichever worker has it, in portions."""
    asked = set(known)
    for state in scheduler.real_workers:
        keys = [task.key for task in state.has_what if task.key not in asked]
        asked.update(keys)
        for start in range(0, len(keys), _KEYS_A_QUESTION):
            yield state.address, keys[start : start + _KEYS_A_QUESTION]


async def _ask(scheduler: Any, address: str, keys: list[Any]) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = await getattr(scheduler.rpc(address), OPERATION)(keys=keys)
    except OSError:
        # It is gone, and its results with it.
        return {"bytes": {}, "unkept": {}}
    return answer


def _actor(task: Any) -> Unkept:
    return Unkept(key=str(task.key), reason=UnkeptReason.ACTOR, nbytes=max(0, task.get_nbytes()))


def _too_large(key: Any, nbytes: int) -> Unkept:
    return Unkept(key=str(key), reason=UnkeptReason.TOO_LARGE, nbytes=nbytes)
