"""What a button of the card does. Called by `widget`, on the background loop."""

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.workers import scaled
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.api import ClaimView

from .card import Act

KEPT_FOR_S = 3600.0
"""What "Keep 1 h" asks for."""


class Press(BaseModel):
    """A button that was pressed, in the browser's words.

    Attributes:
        workers: How many are wanted, for `Act.SCALE`: a number that a second press cannot double.
    """

    act: Act
    workers: Annotated[int, Field(ge=0)] = 0


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
            return await pool.client.release(view.id, "asked for in its card")
        case Act.SCALE:
            bounds = scaled(view, press.workers)
            return await pool.client.scale(view.id, bounds.minimum, bounds.maximum)
        case Act.KEEP:
            return await pool.client.keep_alive(view.id, KEPT_FOR_S, "asked for in its card")
        case Act.RESUME:
            raise BadRequest("Resuming is not available yet.", hint="Claim again to go on.")
