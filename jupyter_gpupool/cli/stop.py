"""`stop`: ends the user's own private pool on this machine.

A manager that is asked to end while claims live leaves them running, for that is how it is
replaced; so this looks first, and never ends what somebody still uses unless told to.
"""

import asyncio
from typing import TYPE_CHECKING

import click

from jupyter_gpupool.pool.errors import Conflict, Unavailable
from jupyter_gpupool.pool.units import format_duration, plural

from .output import json_option, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jupyter_gpupool.client.address import PoolAddress
    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.protocol.api import ClaimView

_MOST_NAMED = 5
_MOST_LISTED = 1000
"""What the manager lists at once, and more than a user may have."""
_ENDS_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.1


@click.command()
@click.option("--release", is_flag=True, help="Give all its claims back first.")
@json_option
def stop(*, release: bool, as_json: bool) -> None:
    """End your private pool on this machine; the next claim starts it again.

    It ends by itself ten minutes after its last claim and use. A pool that GPUPOOL_URL names is
    none of yours and left alone.
    """
    from jupyter_gpupool.client.discovery import from_runtime_file, runtime_file  # noqa: PLC0415

    address = from_runtime_file(runtime_file())
    released = [] if address is None else stop_pool(address, release=release)
    if as_json:
        show_json({"stopped": address is not None, "released": released})
    elif address is None:
        click.echo("No private pool of yours runs on this machine.")
    else:
        given_back = f"; {plural(len(released), 'claim')} given back" if released else ""
        click.echo(f"Your private pool on this machine has ended{given_back}.")


def stop_pool(address: "PoolAddress", *, release: bool) -> "Sequence[str]":
    """End the manager there with its agent; the claims that were given back for it.

    Raises:
        Conflict: If claims live, and they are not to be given back.
        Unavailable: If it does not answer, or a claim does not end.
    """
    from jupyter_gpupool.client.embedded import end_pool  # noqa: PLC0415 - 0.3 s
    from jupyter_gpupool.client.pools import Pool  # noqa: PLC0415 - as above

    pool = Pool(address)
    released = pool.background.run(lambda _say: _emptied(pool.client, release=release))
    end_pool(address)
    return released


async def _emptied(client: "PoolClient", *, release: bool) -> "Sequence[str]":
    from jupyter_gpupool.pool.claim import OVER  # noqa: PLC0415 - 14 ms

    living = [view for view in await _all(client) if view.phase not in OVER]
    if living and not release:
        raise Conflict(
            f"{_named(living)} in your private pool.",
            hint="Give them back with: jupyter gpupool stop --release.",
        )
    for view in living:
        await client.release(view.id, "The pool was stopped.")
    await _ended(client)
    return [view.id for view in living]


async def _all(client: "PoolClient") -> "Sequence[ClaimView]":
    """Also those that are ending: their processes still have to go."""
    return await client.claims(limit=_MOST_LISTED)


def _named(living: "Sequence[ClaimView]") -> str:
    names = ", ".join(view.name for view in living[:_MOST_NAMED])
    more = ", …" if len(living) > _MOST_NAMED else ""
    verb = "lives" if len(living) == 1 else "live"
    return f"{plural(len(living), 'claim')} ({names}{more}) {verb}"


async def _ended(client: "PoolClient") -> None:
    try:
        async with asyncio.timeout(_ENDS_WITHIN_S):
            while await _all(client):  # noqa: ASYNC110 - the manager's books tell, not we
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        raise Unavailable(
            f"{_named(await _all(client))} although given back"
            f" {format_duration(_ENDS_WITHIN_S)} ago.",
            hint="See: jupyter gpupool doctor.",
        ) from None
