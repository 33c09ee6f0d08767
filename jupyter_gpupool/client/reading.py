"""Reads the manager's answers; one that is none of ours is a sentence.

Called by `pool_client` and `policy_client`.
"""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from .errors import Unanswered

_V = TypeVar("_V", bound=BaseModel)


def one(view: type[_V], answer: bytes) -> _V:
    """One view.

    Raises:
        Unanswered: If it is none of this version.
    """
    try:
        return view.model_validate_json(answer)
    except ValidationError as error:
        raise _unreadable(error) from error


def several(view: type[_V], answer: bytes) -> Sequence[_V]:
    """A list of views.

    Raises:
        Unanswered: If it is none of this version.
    """
    # A list parsed in one call is several times faster than one call an item.
    adapter: TypeAdapter[list[_V]] = TypeAdapter(list[view])  # type: ignore[valid-type]
    try:
        return adapter.validate_json(answer)
    except ValidationError as error:
        raise _unreadable(error) from error


def _unreadable(error: ValidationError) -> Unanswered:
    # A page of a proxy's, or a manager's of another version: it may have done what it was asked.
    return Unanswered(
        f"The manager's answer is no {error.title} of this version.",
        hint="Compare `jupyter gpupool --version` with the manager's.",
    )
