"""Makes the bodies of requests: what cannot be one is a BadRequest that names the term.

Called by `pool_client`, `cli` and the notebook's `terms`. Values of secret terms are never shown.
"""

from typing import Any, TypeVar

from pydantic import ValidationError

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.bodies import Body

_B = TypeVar("_B", bound=Body)
_CANNOT_BE_WRITTEN = (ValueError, TypeError, OverflowError)
_SECRET = frozenset({"env"})
_SHOWN = 80


def make(body: type[_B], **values: Any) -> _B:
    """A body of these values.

    Raises:
        BadRequest: If one of them is of the wrong kind, too long, unknown, or no text; `field`
            names it.
    """
    try:
        made = body(**values)
    except ValidationError as error:
        # Not "from": the cause would show the values once more.
        raise refused(error) from None
    written(made)
    return made


def written(body: Body) -> bytes:
    """A body as it is sent.

    Raises:
        BadRequest: If a term holds what JSON cannot; `field` names it, its value is not shown.
    """
    try:
        return _json(body)
    except _CANNOT_BE_WRITTEN:
        field = next((name for name in type(body).model_fields if not _is_text(body, name)), "")
        # Not "from": the cause would show the value.
        raise BadRequest(
            f"{field or 'That'} cannot be sent: it holds characters that are no text.",
            field=field,
            hint="Write it anew, or leave it out.",
        ) from None


def _is_text(body: Body, name: str) -> bool:
    try:
        _json(body, {name})
    except _CANNOT_BE_WRITTEN:
        return False
    return True


def _json(body: Body, names: set[str] | None = None) -> bytes:
    return body.model_dump_json(include=names, exclude_defaults=True).encode()


def refused(error: ValidationError) -> BadRequest:
    """One sentence for the first thing that is wrong."""
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part)[:_SHOWN] for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return BadRequest(f"There is no term {field!r}.", field=field)
    if not first["loc"] or first["loc"][0] in _SECRET:
        return BadRequest(f"{field or 'That'} cannot be: {message}.", field=field)
    return BadRequest(f"{field}={_short(first['input'])} cannot be: {message}.", field=field)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
