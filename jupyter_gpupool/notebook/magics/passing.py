"""Variables on their way between a kernel and a worker. Loaded on both sides.

Each is pickled by itself, so that the one which cannot be is named.
"""

# mypy: allow-untyped-calls
# cloudpickle types only some of what it offers.

import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import cloudpickle  # type: ignore[import-untyped]

_T = TypeVar("_T")


class CannotPass(Exception):
    """A variable that cannot go over; its text is one sentence."""


def pack(names: Iterable[str], namespace: Mapping[str, Any], where: str) -> dict[str, bytes]:
    """Pickle variables of a namespace.

    Args:
        names: Which.
        namespace: Where they are.
        where: Its name for people, such as "in this notebook".

    Raises:
        CannotPass: If one is not there or cannot be pickled.
    """
    return {name: _packed(name, namespace, where) for name in names}


def unpack(packed: Mapping[str, bytes], where: str) -> dict[str, Any]:
    """The variables again.

    Raises:
        CannotPass: If one cannot be made here, mostly because a package is missing.
    """
    return {name: _unpacked(name, pickled, where) for name, pickled in packed.items()}


def _packed(name: str, namespace: Mapping[str, Any], where: str) -> bytes:
    if name not in namespace:
        raise CannotPass(f"There is no variable {name!r} {where}.")
    pickled: bytes = _passed(
        lambda: cloudpickle.dumps(namespace[name]), f"The variable {name!r} cannot be pickled"
    )
    return pickled


def _unpacked(name: str, pickled: bytes, where: str) -> Any:
    return _passed(
        lambda: pickle.loads(pickled),  # noqa: S301 - its owner's own
        f"The variable {name!r} cannot be read {where}",
    )


def _passed(make: Callable[[], _T], sentence: str) -> _T:
    try:
        return make()
    # A class's own way of being pickled may raise anything.
    except Exception as error:
        raise CannotPass(f"{sentence}: {_line(error)}.") from error


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")[:300]
