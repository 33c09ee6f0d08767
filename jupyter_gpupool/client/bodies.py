"""Makes the bodies of requests: what cannot be one is a BadRequest that names the term.

Called by `pool_client`, `cli` and the notebook's `terms`. Values of secret terms are never shown.
"""

from typing import Any, TypeVar

from pydantic import ValidationError

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.api import Body

_B = TypeVar("_B", bound=Body)
_SECRET = frozenset({"env"})
_SHOWN = 80


def make(body: type[_B], **values: Any) -> _B:
    """A body of these values.

    Raises:
        BadRequest: If one of them is of the wrong kind, too long, or unknown; `field` names it.
    """
    try:
        return body(**values)
    except ValidationError as error:
        # Not "from": the cause would show the values once more.
        raise refused(error) from None


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
