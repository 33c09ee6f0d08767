"""What a button of the card does. Called by `widget`, on the background loop."""

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.warned import KEPT_FOR_S, keep_minutes
from jupyter_gpupool.notebook.workers import scaled
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.api import ClaimView

from .card import Act

_UNASKED = "asked for in its card"


class Press(BaseModel):
    """A button that was pressed, in the browser's words.

    Attributes:
        workers: How many are wanted, for `Act.SCALE`: a number that a second press cannot double.
        reason: Why, for `Act.KEEP` where the policy asks for that.
    """

    act: Act
    workers: Annotated[int, Field(ge=0)] = 0
    reason: Annotated[str, Field(max_length=200)] = ""


def read_press(content: object) -> Press:
    """The press in a message from a browser.

    Raises:
        BadRequest: If it is none.
    """
    try:
        return Press.model_validate(content)
    except ValidationError as error:
        raise BadRequest(
            "The card's button asks for something that this version does not know.",
            hint="Show the claim again.",
        ) from error


async def carry_out(press: Press, pool: Pool, view: ClaimView) -> ClaimView:
    """Do what was pressed; the claim as it is afterwards.

    Raises:
        PoolError: If it cannot be done; the message is for the one who pressed.
    """
    match press.act:
        case Act.CANCEL | Act.RELEASE:
            return await pool.client.release(view.id, _UNASKED)
        case Act.SCALE:
            bounds = scaled(view, press.workers)
            return await pool.client.scale(view.id, bounds.minimum, bounds.maximum)
        case Act.KEEP:
            keep = None if view.warning is None else view.warning.keep
            # Whole minutes, so that what was offered is not more than a moment later is allowed.
            for_s = 60.0 * keep_minutes(keep) if keep else KEPT_FOR_S
            # A reason that the policy asks for is its user's own.
            reason = press.reason if keep and keep.asks_reason else _UNASKED
            return await pool.client.keep_alive(view.id, for_s, reason)
        case Act.HIBERNATE:
            return await pool.client.hibernate(view.id, _UNASKED)
        case Act.RESUME:
            return await pool.client.resume(view.id)
